package declare

import (
	"go/ast"
	"go/doc"
	"strings"
	"unicode"
)

// summary is the first sentence of a doc comment, on one line, without anything that could end the
// comment that it is copied to.
func summary(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	return oneLine(new(doc.Package).Synopsis(g.Text()))
}

// deprecated is the paragraph by which a doc comment tells tools not to use something any more.
func deprecated(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	for paragraph := range strings.SplitSeq(g.Text(), "\n\n") {
		if strings.HasPrefix(paragraph, "Deprecated: ") {
			return oneLine(paragraph)
		}
	}
	return ""
}

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
