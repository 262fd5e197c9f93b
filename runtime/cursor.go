package emq

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/echomq/emq/internal/wire"
)

// A cursor names what it is a cursor of, then a place there, and ends with a sum of both: one that was cut or
// changed on its way through a URL is refused, instead of beginning somewhere else.

// cursor writes the cursor of a place in a list.
func (q *Queue) cursor(list, place string) string {
	text := q.name + "/" + list + "/" + place
	return text + "/" + cursorSum(text)
}

// place reads a cursor of a list.
func (q *Queue) place(list, cursor string) (string, error) {
	end := strings.LastIndexByte(cursor, '/')
	if end >= 0 && cursorSum(cursor[:end]) == cursor[end+1:] {
		if place, own := strings.CutPrefix(cursor[:end], q.name+"/"+list+"/"); own {
			return place, nil
		}
	}
	return "", q.noCursor(list, cursor)
}

func (q *Queue) noCursor(list, cursor string) error {
	return fmt.Errorf("%w: queue %s: %s is no cursor of its %s: pass the Next of the page before as it is, with the same options",
		ErrInvalid, q.name, wire.Quote(cursor), list)
}

func cursorSum(text string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))
}

// isScanCursor tells what the server takes as the cursor of a SCAN.
func isScanCursor(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}
