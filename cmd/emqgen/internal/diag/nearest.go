package diag

import "strings"

// Nearest finds the candidate that a misspelt word most likely means; it is empty if none is near.
func Nearest(word string, candidates []string) string {
	best, least := "", len(word)/3+1
	for _, c := range candidates {
		d := Distance(strings.ToLower(word), strings.ToLower(c))
		if len(word) < 5 && d > 1 && d > len(c)-len(word) && !strings.EqualFold(word[:1], c[:1]) {
			continue // half of a short word is another, and so is its first letter: name is not a slip of rate
		}
		if d <= least && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}

// Suggest is Nearest as a hint.
func Suggest(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return "did you mean " + n + "?"
	}
	return ""
}

// Distance counts the letters to insert, drop, change, or swap with their neighbour.
func Distance(a, b string) int {
	const far = 1 << 20
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			swap := far
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				swap = before[j-2] + 1
			}
			row[j] = min(last[j]+1, row[j-1]+1, change, swap)
		}
		before, last = last, row
	}
	return last[len(b)]
}
