package route

import "testing"

const someSecond = 1767323045 // 2026-01-02T03:04:05Z

var starts = []struct {
	query string
	want  Start
}{
	{"", Start{}},
	{"a=b", Start{}},
	{"since=", Start{}},
	{"last", Start{}},
	{"Since=5", Start{}},
	{"since=1767323045000", Start{StartSince, someSecond * 1000}},
	{"since=0", Start{StartSince, 0}},
	{"since=2026-01-02T03:04:05Z", Start{StartSince, someSecond * 1000}},
	{"since=2026-01-02T03%3A04%3A05.25Z&last=3", Start{StartSince, someSecond*1000 + 250}},
	{"since=2026-01-02T05:04:05+02:00", Start{StartSince, someSecond * 1000}}, // a plus stays a plus
	{"since=1960-01-01T00:00:00Z", Start{StartSince, 0}},
	{"last=100", Start{StartLast, 100}},
	{"x&last=0", Start{StartLast, 0}},
	{"last=%31", Start{StartLast, 1}},
	{"last=999999999999999", Start{StartLast, 999999999999999}},
	{"last=1000000000000000", Start{Kind: StartForeign}},
	{"since=15m", Start{Kind: StartForeign}},
	{"since=-5", Start{Kind: StartForeign}},
	{"since=2026-01-02", Start{Kind: StartForeign}},
	{"since=2026-01-02 03:04:05Z", Start{Kind: StartForeign}},
	{"since=%zz", Start{Kind: StartForeign}},
	{"since=1&since=1", Start{Kind: StartForeign}},
	{"last=1&last=2", Start{Kind: StartForeign}},
	{"last=2026-01-02T03:04:05Z", Start{Kind: StartForeign}},
	{"last=+5", Start{Kind: StartForeign}},
	{"last=٣", Start{Kind: StartForeign}},
}

func TestStartOf(t *testing.T) {
	for _, tc := range starts {
		if got := StartOf([]byte(tc.query), make([]byte, 0, len(tc.query))); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.query, got, tc.want)
		}
	}
}
