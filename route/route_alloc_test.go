//go:build !race

package route

import "testing"

// The request path allocates nothing: 15,000 clients reconnect at once.
func TestRequestPathDoesNotAllocate(t *testing.T) {
	cors := mustCORS(t, true, "https://app.test", "https://*.app.test")
	table, err := NewTable([]Route{{Path: "/events", CORS: cors}, {Host: "gw.test", Path: "/users/{user}/events", CORS: cors}})
	if err != nil {
		t.Fatal(err)
	}
	var (
		path    = []byte("/events")
		user    = []byte("/users/u1/events")
		host    = []byte("GW.test")
		params  Params
		origins = [][]byte{[]byte("https://app.test"), []byte("https://x.app.test"), []byte("https://evil.test")}
		query   = []byte("a=b&lastEventId=v1%3A0-5&c")
		fields  = make([]byte, 0, 512)
		scratch = make([]byte, 0, 512)
	)
	allocs := testing.AllocsPerRun(100, func() {
		if _, ok := table.Lookup(host, user, &params); !ok {
			t.Fatal("no route")
		}
		r, ok := table.Lookup(host, path, &params)
		if !ok {
			t.Fatal("no route")
		}
		for _, o := range origins {
			g := r.CORS.Decide(o)
			fields = g.AppendFields(fields[:0])
			fields = g.AppendPreflightFields(fields[:0], false)
		}
		if ResumeID(nil, false, query, scratch).Kind != ResumeGiven {
			t.Fatal("no id")
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations a request, want 0", allocs)
	}
}
