package hub

import (
	"strings"
	"testing"

	"tailcast/frame"
)

// TestOneResync: whatever befell a position while its client was away is one
// event, before every record; what shows behind records is another.
func TestOneResync(t *testing.T) {
	a, b, c, old := tagOf("a", 1), tagOf("b", 2), tagOf("c", 3), tagOf("a", 9)
	for _, tc := range []struct {
		name, from string
		max, scan  int64
		restart    bool
		want       string // data of the resync events, and ... for records
	}{
		{"expired, then read too much", "v1:0-4" + a + ",0-19" + b + ",0-29" + c, 1000, 0, false, `{"reason":"too-far","topics":{"a":[{"partition":0,"from":5,"to":19}]}}`},
		{"expired, then none may come", "v1:0-4" + a + ",0-4" + b + ",0-29" + c, 0, 1000, false, `{"reason":"too-far","topics":{"a":[{"partition":0,"from":5,"to":19}],"b":[{"partition":0,"from":5,"to":19}]}}`},
		{"expired, then too far behind records", "v1:0-4" + a + ",0-19" + b + ",0-29" + c, 3, 1000, false, `{"reason":"expired","topics":{"a":[{"partition":0,"from":5,"to":9}]}} ... {"reason":"too-far","topics":{"a":[{"partition":0,"from":13,"to":19}]}}`},
		{"expired and truncated", "v1:0-4" + a + ",0-25" + b + ",0-29" + c, 1000, 1000, false, `{"reason":"truncated","topics":{"a":[{"partition":0,"from":5,"to":9}],"b":[{"partition":0,"from":20,"to":25}]}} ...`},
		{"another topic and expired", "v1:0-4" + old + ",0-4" + b + ",0-29" + c, 1000, 1000, false, `{"reason":"recreated","topics":{"a":[],"b":[{"partition":0,"from":5,"to":9}]}} ...`},
		{"another topic, expired and truncated", "v1:0-4" + old + ",0-4" + b + ",0-35" + c, 1000, 1000, false, `{"reason":"recreated","topics":{"a":[],"b":[{"partition":0,"from":5,"to":9}],"c":[{"partition":0,"from":30,"to":35}]}} ...`},
		{"another topic, then too far", "v1:0-4" + old + ",0-19" + b + ",0-29" + c, 1000, 0, false, `{"reason":"too-far","topics":{"a":[{"partition":0,"from":10,"to":19}]}}`},
		{"expired and truncated, begins again", "v1:0-4" + a + ",0-25" + b + ",0-29" + c, 1000, 1000, true, `{"reason":"expired","topics":{"a":[{"partition":0,"from":5,"to":9}]}}`},
	} {
		s := newSeveral(t)
		s.hub.opts.ReplayMax, s.hub.opts.ReplayScan = tc.max, tc.scan
		s.open(0, 10, 20)
		s.open(1, 10, 20)
		s.open(2, 10, 30)
		var got []string
		for _, e := range s.from(Start{Position: id(t, tc.from), Restart: tc.restart}) {
			switch {
			case e.Type == "resync":
				got = append(got, e.Data)
			case e.Data != "" && (len(got) == 0 || got[len(got)-1] != "..."):
				got = append(got, "...")
			}
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, text, tc.want)
		}
	}
}

// TestNoticeJoins: of reasons that meet in one event the one that the stream
// goes on by names it, and no range is lost but what that replaces.
func TestNoticeJoins(t *testing.T) {
	r := func(partition int32, from, to int64) frame.Range {
		return frame.Range{Topic: "t", Partition: partition, From: from, To: to}
	}
	of := func(reason frame.Reason, lost ...frame.Range) notice { return notice{reason, lost} }
	whole := frame.Range{Topic: "t", Partition: frame.Whole}
	for _, tc := range []struct{ before, more, want notice }{
		{of(frame.Expired, r(0, 1, 4)), of(frame.Expired, r(0, 5, 9)), of(frame.Expired, r(0, 1, 9))},
		{of(frame.Expired, r(0, 1, 4)), of(frame.Expired, r(0, 6, 9)), of(frame.Expired, r(0, 1, 4), r(0, 6, 9))},
		{of(frame.Expired, r(0, 1, frame.Unknown)), of(frame.Expired, r(0, 0, 9)), of(frame.Expired, r(0, 1, frame.Unknown), r(0, 0, 9))},
		{of(frame.Truncated, r(0, 5, 9)), of(frame.Expired, r(1, 1, 4)), of(frame.Truncated, r(0, 5, 9), r(1, 1, 4))},
		{of(frame.Expired, r(0, 1, 4)), of(frame.Recreated, whole), of(frame.Recreated, whole)},
		{of(frame.Expired, r(0, 1, 4)), of(frame.Recreated), of(frame.Recreated)},
		{of(frame.Expired, r(0, 1, 4)), of(frame.UnknownID), of(frame.UnknownID)},
		{of(frame.UnknownID), of(frame.Expired, r(0, 1, 4)), of(frame.UnknownID)},
		{of(frame.UnknownID), of(frame.TooFar, r(0, 1, 4)), of(frame.TooFar, r(0, 1, 4))},
		{of(frame.TooFar, r(0, 1, 4)), of(frame.UnknownID), of(frame.UnknownID)},
		{of(frame.TooFar, r(0, 1, 4)), of(frame.Truncated, r(1, 5, 9)), of(frame.TooFar, r(0, 1, 4), r(1, 5, 9))},
	} {
		got := notice{}
		got.join(tc.before)
		got.join(tc.more)
		if g, w := frame.AppendResync(nil, nil, got.reason, got.lost), frame.AppendResync(nil, nil, tc.want.reason, tc.want.lost); string(g) != string(w) {
			t.Errorf("%v and %v: got %s, want %s", tc.before, tc.more, g, w)
		}
	}
}
