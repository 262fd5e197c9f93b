package declare

import (
	"go/build/constraint"
	"path/filepath"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/load"
)

// constraintOf is the build constraint of a file, that of its name included, as an expression.
func constraintOf(f *load.File) string {
	var parts []constraint.Expr
	for _, tag := range nameTags(filepath.Base(f.Path)) {
		parts = append(parts, &constraint.TagExpr{Tag: tag})
	}
	for _, g := range f.AST.Comments {
		if g.Pos() > f.AST.Package {
			break
		}
		for _, c := range g.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			// A line that does not parse excludes the file, so that it is not among ours.
			if x, err := constraint.Parse(c.Text); err == nil {
				parts = append(parts, x)
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	all := parts[0]
	for _, x := range parts[1:] {
		all = &constraint.AndExpr{X: all, Y: x}
	}
	return all.String()
}

// tagsOf are the words of a constraint.
func tagsOf(expr string) []string {
	return strings.FieldsFunc(expr, func(r rune) bool { return strings.ContainsRune("!&|() ", r) })
}

// nameTags are the tags that a file's name asks for, as the go command reads it.
func nameTags(name string) []string {
	name = strings.TrimSuffix(name, ".go")
	_, name, found := strings.Cut(name, "_")
	if !found {
		return nil
	}
	l := strings.Split(name, "_")
	n := len(l)
	switch {
	case n >= 2 && isOS(l[n-2]) && isArch(l[n-1]):
		return l[n-2:]
	case isOS(l[n-1]) || isArch(l[n-1]):
		return l[n-1:]
	}
	return nil
}

func isOS(s string) bool {
	switch s {
	case "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux",
		"nacl", "netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows", "zos":
		return true
	}
	return false
}

func isArch(s string) bool {
	switch s {
	case "386", "amd64", "amd64p32", "arm", "armbe", "arm64", "arm64be", "loong64", "mips", "mipsle",
		"mips64", "mips64le", "mips64p32", "mips64p32le", "ppc", "ppc64", "ppc64le", "riscv", "riscv64",
		"s390", "s390x", "sparc", "sparc64", "wasm":
		return true
	}
	return false
}
