package load

import "bytes"

// speaks says whether a file has a comment that begins with emq in any case: a directive, or
// something that may have been meant as one. It saves parsing what has nothing for us.
func speaks(f *File) bool {
	for line := range bytes.Lines(f.Src) {
		for rest := line; ; {
			i := bytes.Index(rest, []byte("//"))
			if block := bytes.Index(rest, []byte("/*")); i < 0 || block >= 0 && block < i {
				i = block
			}
			if i < 0 {
				break
			}
			rest = rest[i+2:]
			if beginsWithEmq(rest) {
				return true
			}
		}
		// A line of a block comment.
		if beginsWithEmq(bytes.TrimLeft(line, " \t*/")) {
			return true
		}
	}
	return false
}

func beginsWithEmq(s []byte) bool {
	s = bytes.TrimLeft(s, " \t")
	return len(s) >= 3 && s[0]|0x20 == 'e' && s[1]|0x20 == 'm' && s[2]|0x20 == 'q'
}
