package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// filters are routes for most tests of filters.
var filters = []pathFilter{
	{"/key/{user}", [][]string{{"key={user}"}}},
	{"/header", [][]string{{"headers.region={region}"}}},
	{"/json", [][]string{{"json.tenant.id={tenant}"}}},
	{"/literal", [][]string{{"key=bob"}}},
	{"/and/{user}", [][]string{{"key={user}", "headers.region={region}"}}},
	{"/or/{user}", [][]string{{"key={user}"}, {"json.tenant.id={tenant}"}}},
	{"/prefix/{user}", [][]string{{"key=user-{user}"}}},
	{"/claim", [][]string{{"key=${claims.sub}"}}},
}

func withFilters(as *setup) { as.filters = filters }

// put appends one record with a key, headers in pairs and a value, and makes
// it readable; "-" is null.
func (s *tail) put(key, value string, headers ...string) {
	null := func(text string) []byte {
		if text == "-" {
			return nil
		}
		return []byte(text)
	}
	rec := frame.Record{Topic: s.topic, Offset: s.next[0], Time: -1, Key: null(key), Value: null(value)}
	for i := 0; i < len(headers); i += 2 {
		rec.Headers = append(rec.Headers, frame.Header{Name: headers[i], Value: null(headers[i+1])})
	}
	s.sink.Append(0, []frame.Record{rec})
	s.next[0]++
	s.sink.Flush(nil)
}

// TestFilters opens each stream before the records, and once more behind them
// with an id of the beginning: it gets the same.
func TestFilters(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"/events", "1 2 3 4 5 - 7 8"},
		{"/key/ann", "1 4"},
		{"/key/nobody", ""},
		{"/key/%61nn", "1 4"},
		{"/literal", "2 -"},
		{"/header?region=eu", "1 3 4"},
		{"/header?region=us", "2 3"},
		{"/header?region=EU", ""},
		{"/json?tenant=7", "5 7"},
		{"/json?tenant=null", ""},
		{"/and/ann?region=eu", "1 4"},
		{"/and/ann?region=us", ""},
		{"/or/ann?tenant=7", "1 4 5 7"},
		{"/or/bob?tenant=8", "2 - 7"},
		{"/prefix/9", "8"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
				r := newRig(t, withFilters)
				r.open(1)
				live := r.dial()
				live.send(req("GET " + tt.target + " " + version))
				r.put("ann", "1", "region", "eu")
				r.put("bob", "2", "region", "us")
				r.put("-", "3", "region", "us", "region", "eu")
				r.put("ann", `4`, "region", "-", "region", "eu")
				r.put("", `{"tenant":{"id":7},"n":5}`)
				r.put("bob", "-")
				r.put("null", `{"tenant":{"id":[null,{"id":9},"8",7,7]},"n":7}`, "region", "-")
				r.put("user-9", `{"tenant":{"id":null},"n":8}`)
				r.settle()
				late := r.dial()
				late.send(req("GET "+tt.target+" "+version, "Last-Event-ID: v1:"))
				for what, p := range map[string]*peer{"live": live, "late": late} {
					if got := short(p); got != tt.want {
						t.Errorf("%s, %s: got %q, want %q", version, what, got, tt.want)
					}
				}
			}
		})
	}
}

// short is the events that have arrived, by the numbers in their data.
func short(p *peer) string {
	var all []string
	for _, e := range p.events() {
		switch i := strings.LastIndex(e.Data, `"n":`); {
		case e.Type == "delete":
			all = append(all, "-")
		case i >= 0:
			all = append(all, strings.TrimSuffix(e.Data[i+4:], "}"))
		default:
			all = append(all, e.Data)
		}
	}
	return strings.Join(all, " ")
}

func TestFilterRefusals(t *testing.T) {
	for _, tt := range []struct {
		target string
		status string
		reason string
	}{
		{"/header", "400", `"region"`},
		{"/header?region=", "400", `"region"`},
		{"/header?region=eu&region=us", "400", `"region"`},
		{"/header?region=" + strings.Repeat("x", 1025), "400", "headers.region"},
		{"/and/ann", "400", `"region"`},
		{"/claim", "403", `"sub"`},
	} {
		t.Run(tt.target[:min(len(tt.target), 30)], func(t *testing.T) {
			r := newRig(t, withFilters)
			r.open(1)
			p := r.dial().get(tt.target)
			got, _ := p.read()
			if !strings.HasPrefix(got, "HTTP/1.1 "+tt.status+" ") || !strings.Contains(got, tt.reason) {
				t.Errorf("got %q", got)
			}
			if r.l.counts.streams != 0 || p.c.filtered != nil {
				t.Error("it is a stream all the same")
			}
			p = r.dial()
			p.send(req("HEAD " + tt.target + " HTTP/1.1"))
			if got, _ := p.read(); !strings.HasPrefix(got, "HTTP/1.1 "+tt.status+" ") || !strings.HasSuffix(got, "\r\n\r\n") {
				t.Errorf("HEAD: got %q", got)
			}
		})
	}
}

// TestFilteredHeartbeat: the position moves on silently, and a client that
// comes back with what it was told gets nothing twice.
func TestFilteredHeartbeat(t *testing.T) {
	r := newRig(t, withFilters)
	r.open(1)
	p := r.dial().get("/key/ann")
	p.read()
	beat := func() string {
		r.l.tell()
		r.l.began = r.l.began.Add(-16 * time.Second)
		r.l.tell()
		r.l.pass(p.c.stream.reader)
		r.settle()
		got, _ := p.read()
		return got
	}
	if got := beat(); got != frame.Heartbeat {
		t.Fatalf("nothing happened: %q", got)
	}
	r.put("bob", "1")
	r.put("bob", "2")
	r.settle()
	if got, _ := p.read(); got != "" {
		t.Fatalf("bob's: %q", got)
	}
	if got := beat(); !strings.Contains(got, "id: v1:0-1~") || strings.Contains(got, "data") {
		t.Fatalf("the position moved: %q", got)
	}
	if got := beat(); got != frame.Heartbeat {
		t.Fatalf("it did not move since: %q", got)
	}
	r.put("ann", "3")
	r.settle()
	if got, _ := p.read(); !strings.Contains(got, "id: v1:0-2~") {
		t.Fatalf("ann's: %q", got)
	}
	if got := beat(); got != frame.Heartbeat {
		t.Fatalf("the event told it: %q", got)
	}
}

// TestFilteredHeartbeatAfterResume: what came while nobody listened moves the
// position of a client that comes back, though none of it is for the client.
func TestFilteredHeartbeatAfterResume(t *testing.T) {
	r := newRig(t, withFilters)
	r.open(1)
	p := r.dial().get("/key/ann")
	first, _ := p.read()
	_, id, _ := strings.Cut(first, "\nid: ")
	id, _, _ = strings.Cut(id, "\n")
	r.l.close(p.c, closePeer) // and nobody is left
	r.put("bob", "1")
	r.put("bob", "2")
	p = r.dial().get("/key/ann?lastEventId=" + id)
	if got, _ := p.read(); !strings.Contains(got, "id: "+id+"\n") {
		t.Fatalf("it begins with %q, want its id %s", got, id)
	}
	r.l.began = r.l.began.Add(-16 * time.Second)
	r.l.tell()
	r.l.pass(p.c.stream.reader)
	r.settle()
	if got, _ := p.read(); !strings.Contains(got, "id: v1:0-1~") || strings.Contains(got, "data") {
		t.Fatalf("the position moved: %q", got)
	}
}

// TestFilteredSlow: what counts is what is for the stream.
func TestFilteredSlow(t *testing.T) {
	r := newRig(t, func(as *setup) { as.MaxLag, as.filters = 100_000, filters })
	r.sndbuf = 4096
	r.open(1)
	p := r.dial().get("/key/ann")
	value := strings.Repeat("x", 10_000)
	for range 3 {
		r.put("ann", value)
	}
	for range 100 {
		r.put("bob", value)
	}
	r.settle()
	if p.c.list != &r.l.lagging {
		t.Fatal("it does not lag")
	}
	for range 3 {
		r.later(6 * time.Second)
	}
	if r.l.counts.closed[closeLag] != 0 {
		t.Fatal("dropped for what is bob's")
	}
	p.events()
	for range 40 {
		r.put("ann", value)
	}
	r.settle()
	r.later(time.Second)
	if !p.near.open {
		t.Fatal("dropped in a burst")
	}
	r.later(6 * time.Second)
	r.later(6 * time.Second)
	if r.l.counts.closed[closeLag] != 1 {
		t.Fatalf("closed: %v", r.l.counts.closed)
	}
}

// TestFilteredSteady: a stream that is always behind, and takes within five
// seconds what it owed at their beginning, is slow and not too slow.
func TestFilteredSteady(t *testing.T) {
	r := newRig(t, func(as *setup) { as.MaxLag, as.filters = 100_000, filters })
	r.sndbuf = 4096
	r.open(1)
	p := r.dial().get("/key/ann")
	const burst = 30
	value := strings.Repeat("x", 10_000)
	put := func() {
		for range burst {
			r.put("ann", value)
		}
		r.settle()
	}
	put()
	for n := range 4 {
		put() // before the last one is taken
		for taken := 0; taken < burst*len(value); r.later(lookEvery) {
			got, ended := p.read()
			if taken += len(got); ended {
				t.Fatalf("round %d: dropped, %v", n, r.l.counts.closed)
			}
		}
		if p.c.list != &r.l.lagging {
			t.Fatal("it does not lag")
		}
		r.later(owedFor + time.Second)
	}
	if !p.near.open {
		t.Fatalf("dropped: %v", r.l.counts.closed)
	}
}

// TestFilteredResync: a loss is told to every stream, quiet or behind.
func TestFilteredResync(t *testing.T) {
	r := newRig(t, withFilters)
	r.sndbuf = 4096
	r.open(1)
	quiet, behind := r.dial().get("/key/ann"), r.dial().get("/key/bob")
	r.put("bob", strings.Repeat("x", 100_000))
	r.put("bob", "2")
	r.settle()
	if behind.c.list != &r.l.lagging || quiet.c.list != &quiet.c.stream.quiet {
		t.Fatal("not as it should begin")
	}
	r.sink.Lost(frame.Expired, nil, []frame.Partition{{ID: 0, Next: 10}})
	r.next[0] = 10
	r.put("eve", "3")
	r.settle()
	if got := typesOf(quiet.events()); got != "resync" {
		t.Errorf("a quiet stream got %q", got)
	}
	var got []string
	for range 100 {
		got = append(got, strings.Fields(typesOf(behind.events()))...)
		r.later(lookEvery)
	}
	if want := []string{"message", "message", "resync"}; !slices.Equal(got, want) {
		t.Errorf("one that was behind got %q, want %q", got, want)
	}
	r.put("bob", "4")
	r.settle()
	if got := behind.data(); got != "4" {
		t.Errorf("then got %q", got)
	}

	r.put("ann", "5") // all found at once
	r.sink.Lost(frame.Expired, nil, []frame.Partition{{ID: 0, Next: 20}})
	r.next[0] = 20
	r.put("ann", "6")
	r.put("bob", "7")
	r.put("ann", "8")
	r.settle()
	const lost = `{"reason":"expired","topics":{}}`
	if got := quiet.data(); got != "5 "+lost+" 6 8" {
		t.Errorf("among its records it got %q", got)
	}
	if got := behind.data(); got != lost+" 7" {
		t.Errorf("before its record it got %q", got)
	}
}

// TestFilteredMany: more for one stream at a time than is written at once, and
// more for all of them than is remembered.
func TestFilteredMany(t *testing.T) {
	r := newRig(t, withFilters)
	r.open(1)
	var peers []*peer
	for i := range 30 {
		peers = append(peers, r.dial().get("/header?region=eu"), r.dial().get(fmt.Sprint("/key/", i)))
	}
	var all []string
	own := make([][]string, 30)
	for i := range 1500 {
		text := strconv.Itoa(i)
		if i%3 > 0 {
			all = append(all, text)
		}
		own[i%30] = append(own[i%30], text)
		r.put(strconv.Itoa(i%30), text, "region", []string{"us", "eu", "eu"}[i%3])
	}
	r.settle()
	for i := range 30 {
		if got := peers[2*i].data(); got != strings.Join(all, " ") {
			t.Fatalf("by region: got %.100q", got)
		}
		if got := peers[2*i+1].data(); got != strings.Join(own[i], " ") {
			t.Fatalf("by key %d: got %.100q", i, got)
		}
	}
}

func typesOf(events []ssetest.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return strings.Join(all, " ")
}

// TestFilteredOverwritten: a loop that was away for as long as the log holds
// drops the streams that missed something, and goes on for those that come.
func TestFilteredOverwritten(t *testing.T) {
	r := newRig(t, func(as *setup) { as.hub.LogBytes, as.filters = 512<<10, filters })
	r.open(1)
	p := r.dial().get("/key/ann")
	key := strings.Repeat("k", 1000) // labels that fill their log too
	for range 2000 {
		r.put(key, strings.Repeat("x", 1000))
	}
	r.settle()
	if r.l.counts.closed[closeOverwritten] != 1 || p.near.open {
		t.Fatalf("closed: %v", r.l.counts.closed)
	}
	p = r.dial().get("/key/ann")
	r.put("ann", "1")
	r.settle()
	if got := p.data(); got != "1" {
		t.Errorf("the next stream got %q", got)
	}
}

// TestFilteredEnds in the middle of a frame, with more that is for it: the
// frame is whole, then comes the farewell.
func TestFilteredEnds(t *testing.T) {
	r := newRig(t, withFilters)
	r.sndbuf = 4096
	r.open(1)
	p := r.dial().get("/key/ann")
	r.put("ann", strings.Repeat("x", 100_000))
	r.put("ann", "2")
	r.settle()
	r.l.end(p.c, closeDrain)
	var got []ssetest.Event
	for n := 0; !p.ended; n++ {
		got = append(got, p.events()...)
		if r.later(lookEvery); n > 100 {
			t.Fatal("it does not end")
		}
	}
	if len(got) != 1 || len(got[0].Data) != 100_000 {
		t.Errorf("got %d events", len(got))
	}
	if r.l.feeds[r.feeds[0]] != nil {
		t.Error("its streams are not forgotten")
	}
}

// TestFilteredPersonal: a stream with a position of another node gets what is
// for it under ids of its own, and is filed then.
func TestFilteredPersonal(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		r := newRig(t, withFilters)
		r.open(2)
		for i := range 10 {
			for part := range int32(2) {
				r.sink.Append(part, []frame.Record{{
					Topic: r.topic, Partition: part, Offset: int64(i), Key: fmt.Append(nil, i%2), Value: fmt.Appendf(nil, "%d/%d", part, i),
				}})
			}
			r.sink.Flush(nil)
		}
		p := r.dial()
		p.send(req("GET /key/1 "+version, "Last-Event-ID: v1:0-7.1-3"))
		if got := p.data(); got != "1/5 1/7 0/9 1/9" {
			t.Fatalf("got %q", got)
		}
		if s := p.c.stream; p.c.own != nil || p.c.list != &s.quiet || s.matcher.table.Len() != 1 {
			t.Fatal("it is not among the quiet ones")
		}
		r.sink.Append(0, []frame.Record{{Topic: r.topic, Offset: 10, Key: []byte("1"), Value: []byte("0/10")}})
		r.sink.Flush(nil)
		r.settle()
		if got := p.data(); got != "0/10" {
			t.Errorf("then got %q", got)
		}
	}
}

// TestFilteredWaits for its feed to open.
func TestFilteredWaits(t *testing.T) {
	r := newRig(t, withFilters)
	p := r.dial().get("/key/ann")
	r.open(1)
	r.put("bob", "1")
	r.put("ann", "2")
	r.settle()
	r.put("bob", "3")
	r.put("ann", "4")
	r.settle()
	if got := p.data(); got != "4" && got != "2 4" { // it is placed when the loop sees it
		t.Errorf("got %q", got)
	}
}

// TestFilteredManyOnAFullSocket: a write of many frames ends in the middle of
// them, and nothing new comes that would look for the rest.
func TestFilteredManyOnAFullSocket(t *testing.T) {
	r := newRig(t, withFilters)
	r.sndbuf = 4096
	r.open(1)
	p := r.dial().get("/key/ann")
	for range 2000 { // so that the labels to come lie in one segment
		r.put("bob", "x")
	}
	r.settle()
	var want, got []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("%0*d", 30+i, i))
		r.put("ann", want[i])
	}
	r.settle()
	p.buf = make([]byte, 900)
	for n := 0; len(got) < len(want) && n < 10_000; n++ {
		for _, e := range p.events() {
			got = append(got, e.Data)
		}
		r.later(lookEvery)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d", len(got), len(want))
	}
}
