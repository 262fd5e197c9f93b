package load

import "bytes"

// speaks says whether a file may have a directive in a comment, or something that was meant as one:
// the word emq, misspelt or not, behind the start of a comment or at the start of a line. It saves
// parsing what has nothing for us.
func speaks(f *File) bool {
	for line := range bytes.Lines(f.Src) {
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
