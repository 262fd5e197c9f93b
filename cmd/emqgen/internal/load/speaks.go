package load

import (
	"bytes"

	"github.com/echomq/emq/cmd/emqgen/internal/directive"
)

// speaks says whether a file may have a directive in a comment, or something that was meant as one:
// the word emq, misspelt or not, behind the start of a comment or at the start of a line. It saves
// parsing what has nothing for us.
func speaks(f *File) bool {
	for line := range bytes.Lines(f.Src) {
		if slipped(line) {
			return true
		}
		i := bytes.IndexAny(line, "qQ") // few lines have one
		if i < 0 {
			continue
		}
		low := bytes.ToLower(line)
		for _, tool := range []string{"emq", "eqm", "meq", "echomq"} {
			at := bytes.Index(low, []byte(tool))
			if at < 0 {
				continue
			}
			start := bytes.Index(low, []byte("//"))
			if block := bytes.Index(low, []byte("/*")); start < 0 || block >= 0 && block < start {
				start = block
			}
			if start >= 0 && bytes.Contains(low[start:], []byte(tool)) {
				return true
			}
			// A line of a block comment; not the name of an import.
			begin, rest := bytes.Trim(low[:at], " \t*@+"), bytes.TrimLeft(low[at:], "abcdefghijklmnopqrstuvwxyz-_. \t")
			if len(begin) == 0 && bytes.HasPrefix(rest, []byte(":")) {
				return true
			}
		}
	}
	return false
}

// slipped says whether a line may end in a comment that is a directive but for one slip.
func slipped(line []byte) bool {
	for i := 0; ; i += len("//") {
		at := bytes.Index(line[i:], []byte("//"))
		if at < 0 {
			return false
		}
		if i += at; directive.Slip(string(bytes.TrimSpace(line[i:]))) != "" {
			return true
		}
	}
}
