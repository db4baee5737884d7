package config

// nearest returns the name that a mistyped one is nearest to, "" when none is
// near.
func nearest(typed string, names []string) string {
	if len(typed) > 64 { // twice our longest name
		return ""
	}
	best, bestAt := "", len(typed)/3+1 // up to a third of it mistyped
	for _, name := range names {
		if d := distance(typed, name); d < bestAt {
			best, bestAt = name, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace between a and b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
