package load

import (
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// tree is what lies where the patterns point, whether the go command would say it or not.
type tree struct {
	files map[string]goFiles // by pattern
	pipes []string           // Go files that can be waited for forever
}

// goFiles are Go files by directory.
type goFiles map[string][]string

// survey walks the directories of the patterns that name some.
func survey(cfg Config, patterns []string) *tree {
	t := &tree{files: map[string]goFiles{}}
	for _, pattern := range patterns {
		if base, ok := localBase(cfg.Dir, pattern); ok {
			matches := matcher(pattern)
			t.walk(pattern, base, strings.Contains(pattern, "..."), func(dir string) bool { return matches(localName(cfg.Dir, pattern, dir)) })
		}
	}
	return t
}

// blocked are the faults of files for which the go command would wait without end.
func (t *tree) blocked() (faults []Fault) {
	for _, path := range t.pipes {
		faults = append(faults, Fault{
			Pos: token.Position{Filename: path}, InTheWay: filepath.Base(path) == Output,
			Text: "this is a named pipe, not a regular file: the go command would wait for it. Move it away",
		})
	}
	return faults
}

// unlisted are the directories that patterns with "..." leave out without a word, because the go
// command builds no file of theirs here. Directives in them are to be seen all the same.
func (t *tree) unlisted(patterns []string, listed []*packages.Package) (out []*packages.Package) {
	known := map[string]bool{}
	refused := map[string]bool{}   // patterns, most often because their module is not loaded: the go command says why
	modules := map[string]string{} // directory to path
	for _, p := range listed {
		known[dirOf(p)] = true
		refused[p.PkgPath] = len(p.Errors) > 0 && dirOf(p) == ""
		if p.Module != nil && p.Module.Main {
			modules[p.Module.Dir] = p.Module.Path
		}
	}
	for _, pattern := range patterns {
		whole := pattern == "all" || pattern == "work"
		if _, ok := localBase("", pattern); ok || !whole && !strings.Contains(pattern, "...") {
			continue
		}
		matches := matcher(pattern)
		if whole {
			matches = func(string) bool { return true }
		}
		for root, path := range modules {
			t.walk(pattern, root, true, func(dir string) bool {
				rel, err := filepath.Rel(root, dir)
				return err == nil && matches(filepath.ToSlash(filepath.Join(path, rel)))
			})
		}
	}
	found := goFiles{}
	for pattern, byDir := range t.files {
		for dir, files := range byDir {
			if !known[dir] && !refused[pattern] {
				found[dir] = append(found[dir], files...)
			}
		}
	}
	for dir, files := range found {
		slices.Sort(files)
		out = append(out, &packages.Package{PkgPath: filepath.ToSlash(dir), Dir: dir, IgnoredFiles: slices.Compact(files)})
	}
	return out
}

// walk collects for a pattern the Go files of the directories that are wanted, as the go command walks
// a tree: not into other modules, nor into what it never looks at. What cannot be read it skips, too.
func (t *tree) walk(pattern, base string, deep bool, wanted func(dir string) bool) {
	if t.files[pattern] == nil {
		t.files[pattern] = goFiles{}
	}
	ignored := ignoredBy(base)
	visit := func(path string, d fs.DirEntry, err error) error {
		name := ""
		if d != nil && path != base {
			name = d.Name()
		}
		hidden := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
		dir := filepath.Dir(path)
		switch {
		case err != nil:
		case d.IsDir():
			if name != "" && (!deep || hidden || name == "testdata" || name == "vendor" || exists(filepath.Join(path, "go.mod"))) || deep && ignored(path) {
				return filepath.SkipDir
			}
		case hidden || !strings.HasSuffix(name, ".go") || !wanted(dir):
		case d.Type()&fs.ModeNamedPipe != 0:
			t.pipes = append(t.pipes, path)
		case deep && regular(path):
			t.files[pattern][dir] = append(t.files[pattern][dir], path)
		}
		return nil
	}
	// It cannot fail: visit answers no error but to skip a directory.
	_ = filepath.WalkDir(base, visit)
}

// dirOf is the directory of a package; not every driver of go/packages says it.
func dirOf(p *packages.Package) string {
	if files := slices.Concat(p.GoFiles, p.IgnoredFiles); p.Dir == "" && len(files) > 0 {
		return filepath.Dir(files[0])
	}
	return p.Dir
}

// localBase is the directory at which a pattern of the file system looks, or below which.
func localBase(dir, pattern string) (string, bool) {
	slashed := filepath.ToSlash(pattern)
	if !filepath.IsAbs(pattern) && slashed != "." && slashed != ".." && !strings.HasPrefix(slashed, "./") && !strings.HasPrefix(slashed, "../") {
		return "", false
	}
	if before, _, found := strings.Cut(slashed, "..."); found {
		slashed = before[:strings.LastIndexByte(before, '/')+1]
	}
	if !filepath.IsAbs(pattern) {
		slashed = dir + "/" + slashed
	}
	return filepath.Clean(filepath.FromSlash(slashed)), true
}

// localName is a directory as the pattern would name it.
func localName(dir, pattern, found string) string {
	if rel, err := filepath.Rel(dir, found); err == nil && !filepath.IsAbs(pattern) {
		found = rel
	}
	return filepath.ToSlash(found)
}

// matcher is the go command's rule: "..." is any text, and "/..." at the end also nothing.
func matcher(pattern string) func(name string) bool {
	expr := regexp.QuoteMeta(filepath.ToSlash(filepath.Clean(pattern)))
	expr = strings.ReplaceAll(expr, `\.\.\.`, `.*`)
	if rest, ok := strings.CutSuffix(expr, `/.*`); ok {
		expr = rest + `(/.*)?`
	}
	return regexp.MustCompile(`^` + expr + `$`).MatchString
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ignoredBy says which directories the go.mod above a directory takes out of patterns.
func ignoredBy(base string) func(dir string) bool {
	root := base
	for !exists(filepath.Join(root, "go.mod")) {
		if root == filepath.Dir(root) {
			return func(string) bool { return false }
		}
		root = filepath.Dir(root)
	}
	var ignore []*modfile.Ignore
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if mod, parseErr := modfile.Parse("go.mod", data, nil); err == nil && parseErr == nil {
		ignore = mod.Ignore // of a file that does not parse the go command speaks
	}
	return func(dir string) bool {
		rel, err := filepath.Rel(root, dir)
		name := "/" + filepath.ToSlash(rel) + "/"
		return err == nil && slices.ContainsFunc(ignore, func(i *modfile.Ignore) bool {
			path, atRoot := strings.CutPrefix(i.Path, "./")
			path = "/" + strings.Trim(path, "/") + "/"
			return atRoot && strings.HasPrefix(name, path) || !atRoot && strings.Contains(name, path)
		})
	}
}
