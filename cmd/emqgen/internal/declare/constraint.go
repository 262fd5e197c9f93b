package declare

import (
	"go/ast"
	"go/build/constraint"
	"path/filepath"
	"slices"
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

// notBuilt says why a file is not built here, and what to do about it.
func notBuilt(f *load.File) (what, remedy string) {
	tags := tagsOf(constraintOf(f))
	usesC := slices.ContainsFunc(f.AST.Imports, func(imp *ast.ImportSpec) bool { return imp.Path.Value == `"C"` })
	switch {
	case slices.Contains(tags, "ignore"):
		return `"ignore" keeps this file out of every build`, "remove its directives, or its constraint"
	case len(tags) == 0 && usesC:
		return "this file needs cgo and is not built here", "run emqgen with CGO_ENABLED=1 and a C compiler"
	case len(tags) == 0:
		return "this file is not built here", "run emqgen with the GOOS, GOARCH or tags that build it"
	}
	remedy = "run emqgen with the GOOS, GOARCH or tags that build it"
	if len(tags) == 1 && tags[0] == constraintOf(f) {
		remedy = "run emqgen with " + setting(tags[0])
	}
	return "this file is built only for " + orAll(constraintOf(f)), remedy
}

// setting is how the go command is told a tag.
func setting(tag string) string {
	switch {
	case isOS(tag):
		return "GOOS=" + tag
	case isArch(tag):
		return "GOARCH=" + tag
	case tag == "cgo":
		return "CGO_ENABLED=1"
	case tag == "unix":
		return "the GOOS of a Unix"
	}
	return "GOFLAGS=-tags=" + tag
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
