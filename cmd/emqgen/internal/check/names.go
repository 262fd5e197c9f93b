package check

import (
	"go/types"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// generatedNames reports names of generated code that the package has already, and those that meet
// each other.
func generatedNames(p *model.Package, diags *diag.List) {
	if !p.Generates() {
		return
	}
	seen := map[string]model.Name{}
	for _, n := range p.GeneratedNames() {
		if n.Queue != nil && n.Queue.Ident == "" {
			continue
		}
		hint := "rename it, or add //emq:package prefix=Job"
		if n.Queue != nil {
			hint = "rename it, or give queue " + n.Queue.Name.Value + " another Go name: name=Something"
		}
		if pos, taken := p.Scope[n.Text]; taken {
			diags.Errorf(pos, diag.NameTaken, hint, "%s is declared here, and generated code needs the name%s", n.Text, reason(n))
		}
		if pos, taken := p.Imports[n.Text]; taken {
			diags.Errorf(pos, diag.NameTaken, hint, "%s is the name of an import, and generated code needs it for the package%s", n.Text, reason(n))
		}
		first, twice := seen[n.Text]
		if twice && n.Queue != nil && (first.Queue == nil || first.Queue.Ident != n.Queue.Ident) {
			diags.Errorf(n.Queue.Name.Pos, diag.NamesMeet, "give the queue another Go name: name=Something", "queue %s makes the name %s, which the file has already", n.Queue.Name.Value, n.Text)
		}
		seen[n.Text] = n
	}
	var universe []string
	for name := range p.Scope {
		if obj := types.Universe.Lookup(name); obj != nil {
			universe = append(universe, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(universe)) {
		diags.Errorf(p.Scope[name], diag.NameTaken, "rename it", "%s is declared here, and generated code needs Go's own", name)
	}
}

func reason(n model.Name) string {
	if n.Queue == nil {
		return ""
	}
	return " for queue " + n.Queue.Name.Value
}
