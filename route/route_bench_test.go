package route

import "testing"

// BenchmarkRequest is what a request costs in this package: its route, CORS
// and where its id is.
func BenchmarkRequest(b *testing.B) {
	cors := mustCORS(b, true, "https://app.test", "https://*.app.test")
	table, err := NewTable([]Route{{Path: "/events", CORS: cors}, {Host: "gw.test", Path: "/users/{user}/events", CORS: cors}})
	if err != nil {
		b.Fatal(err)
	}
	var (
		path    = []byte("/users/u1/events")
		host    = []byte("gw.test")
		params  Params
		origin  = []byte("https://x.app.test")
		query   = []byte("a=b&lastEventId=v1%3A0-5&c")
		fields  = make([]byte, 0, 512)
		scratch = make([]byte, 0, 512)
	)
	b.ReportAllocs()
	for b.Loop() {
		r, ok := table.Lookup(host, path, &params)
		if !ok {
			b.Fatal("no route")
		}
		g := r.CORS.Decide(origin)
		fields = g.AppendFields(fields[:0])
		if ResumeID(nil, false, query, scratch).Kind != ResumeGiven {
			b.Fatal("no id")
		}
	}
}
