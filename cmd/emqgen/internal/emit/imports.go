package emit

import (
	"bytes"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// nameImports gives each import its name in the file: its own where that is free, else one with the
// element before it in its path, else one with a number. What is taken: names of the package, of the
// universe, and of our own parameters.
func (f *file) nameImports() {
	paths := slices.Sorted(maps.Keys(f.imports))
	wanted := map[string]int{}
	for _, p := range paths {
		wanted[f.imports[p]]++
	}
	used := map[string]bool{}
	free := func(name string) bool {
		_, declared := f.pkg.Scope[name]
		return !declared && !used[name] && !reserved(name)
	}
	names := map[string]string{}
	for _, p := range paths { // those that can keep their own name go first
		if real := f.imports[p]; wanted[real] == 1 && free(real) || p == emqPath && free(real) {
			names[p], used[real] = real, true
		}
	}
	for _, p := range paths {
		real, name := f.imports[p], names[p]
		if name == "" {
			name = qualified(p, real)
			for i, base := 2, name; !free(name); i++ {
				name = fmt.Sprintf("%s%d", base, i)
			}
			used[name] = true
		}
		if name == real && path.Base(p) == real {
			f.ImportName(p, name)
		} else {
			f.ImportAlias(p, name)
		}
	}
}

// qualified puts the element before the last in front of a package's name: a/client is aclient, and
// context, which has none, stdcontext.
func qualified(importPath, name string) string {
	before := path.Base(path.Dir(importPath))
	if before == "." {
		before = "std"
	}
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, before)
	return strings.TrimLeft(letters, "0123456789") + name
}

// reserved says whether a name means something else where imports are used.
func reserved(name string) bool {
	switch name {
	case "ctx", "job", "opts", "e", "h", "p", "j", "r", "err", "_", "init", "main":
		return true
	}
	return token.IsKeyword(name) || types.Universe.Lookup(name) != nil || strings.HasPrefix(name, "text")
}

// groupImports puts the imports of the standard library into a block of their own, as goimports
// does. It works on formatted source, which it leaves formatted.
func groupImports(src []byte) []byte {
	open, end := []byte("import (\n"), []byte("\n)\n")
	from := bytes.Index(src, open)
	if from < 0 {
		return src
	}
	from += len(open)
	to := from + bytes.Index(src[from:], end)
	var std, other []string
	for line := range strings.Lines(string(src[from:to]) + "\n") {
		first, _, _ := strings.Cut(line[strings.IndexByte(line, '"')+1:], "/")
		if strings.Contains(first, ".") {
			other = append(other, line)
		} else {
			std = append(std, line)
		}
	}
	block := strings.Join(std, "")
	if len(std) > 0 && len(other) > 0 {
		block += "\n"
	}
	block += strings.Join(other, "")
	return slices.Concat(src[:from], []byte(strings.TrimSuffix(block, "\n")), src[to:])
}
