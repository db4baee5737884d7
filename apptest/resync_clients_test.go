//go:build clients

package apptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// watched is a topic under the eyes of the two example pages: web/examples/log.html,
// which has nothing but its stream, and state.html, which fetches its state anew.
type watched struct {
	t      *testing.T
	b      *broker
	s      *testkit.Server
	config string // of s
	site   *site
	shelf  *shelf // of the topic that is served
	log    tab
	state  tab

	want []segment // what the log page has to show
}

// segment is what the log page shows up to a mark.
type segment struct {
	rows map[int32][]string // by partition, for among partitions there is no order
	mark string             // at its end; empty in the last one
}

// watch opens both pages in front of a topic of two partitions, with records
// that the log page has seen and such as it came too late for.
func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, b: started(t, 2, "first", "second"), config: filepath.Join(t.TempDir(), "tailcast.yaml")}
	w.shelf = w.b.shelve("first")
	w.site = newSite(t, w.shelf)
	w.route("first")
	w.s = ready(t, w.b, "--config", w.config, "--cors-origins", w.site.URL)
	w.write("first", 10)
	w.shelf.read(w.b)
	streams := "http://" + w.s.Addr
	w.log = openTab(t, w.site.URL+"/log.html?stream="+streams+"/log")
	w.streams(1)
	w.state = w.log.beside(w.site.URL + "/state.html?stream=" + streams + "/changes")
	w.streams(2)
	w.write("first", 20)
	w.want = []segment{{rows: w.rows(map[int32]int64{0: 10, 1: 10})}}
	w.shown()
	return w
}

// beside opens a page in another tab of the same browser.
func (p tab) beside(address string) tab {
	p.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	p.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		p.Fatal(err)
	}
	return tab{p.T, ctx}
}

// route writes the gateway's file: both routes are of a topic.
func (w *watched) route(topic string) {
	w.t.Helper()
	text := fmt.Sprintf("routes:\n  - {path: /log, topic: %s}\n  - {path: /changes, topic: %[1]s, format: envelope}\n", topic)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// streams waits until so many streams are open.
func (w *watched) streams(n float64) {
	w.t.Helper()
	testkit.Eventually(w.t, patience, fmt.Sprint(n, " streams"), func() bool { return w.s.Metric(w.t, "tailcast_streams") == n })
}

// write writes n records to each partition of a topic: of five keys each, some of
// them tombstones, and of one key that never comes again.
func (w *watched) write(topic string, n int, partitions ...int32) {
	w.t.Helper()
	if len(partitions) == 0 {
		partitions = []int32{0, 1}
	}
	for _, p := range partitions {
		recs := make([]*kgo.Record, n)
		for i := range recs {
			recs[i] = w.b.numbered(topic, p, false)
			var seq int64
			if _, err := fmt.Sscanf(string(recs[i].Value), fmt.Sprintf("%d/%%d/", p), &seq); err != nil {
				w.t.Fatal(err)
			}
			recs[i].Key = fmt.Appendf(nil, "p%d-k%d", p, seq%5)
			switch {
			case seq == onceAt:
				recs[i].Key = fmt.Appendf(nil, "p%d-once", p)
			case seq%11 == 10:
				recs[i].Value = nil
			}
		}
		w.b.send(recs...)
	}
}

// onceAt is the offset of a record whose key has no other.
const onceAt = 35

// rows are what the log page shows of the committed log from offsets on.
func (w *watched) rows(from map[int32]int64) map[int32][]string {
	w.t.Helper()
	rows := map[int32][]string{}
	for p, recs := range w.shelf.read(w.b) {
		for _, r := range recs {
			switch {
			case r.Offset < from[p]:
			case r.Value == nil:
				rows[p] = append(rows[p], string(r.Key)+" is deleted")
			default:
				rows[p] = append(rows[p], string(r.Value))
			}
		}
	}
	return rows
}

// marked notes that the log page has to show a mark now, and behind it what the
// topic holds from offsets on.
func (w *watched) marked(mark string, from map[int32]int64) {
	w.t.Helper()
	w.want[len(w.want)-1].mark = mark
	w.want = append(w.want, segment{rows: w.rows(from)})
}

// shown waits until the log page shows as much as it has to, and compares it.
func (w *watched) shown() {
	w.t.Helper()
	total := 0
	for _, s := range w.want {
		for _, rows := range s.rows {
			total += len(rows)
		}
		if s.mark != "" {
			total++
		}
	}
	w.log.until(fmt.Sprintf(`$("log").children.length >= %d`, total))
	got := w.segments()
	if len(got) != len(w.want) {
		w.t.Fatalf("the page has %d marks, want %d: %+v", len(got)-1, len(w.want)-1, got)
	}
	for i, want := range w.want {
		if got[i].mark != want.mark {
			w.t.Errorf("mark %d is %q, want %q", i, got[i].mark, want.mark)
		}
		if !maps.EqualFunc(got[i].rows, want.rows, slices.Equal) {
			w.t.Errorf("segment %d has the rows\n%q, want\n%q", i, got[i].rows, want.rows)
		}
	}
}

// segments reads the log page.
func (w *watched) segments() []segment {
	w.t.Helper()
	var rows []struct{ Text, Kind string }
	text := w.log.evaluate(`JSON.stringify([...document.getElementById("log").children].map((r) => ({Text: r.textContent, Kind: r.className})))`)
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		w.t.Fatal(err)
	}
	all := []segment{{rows: map[int32][]string{}}}
	for _, r := range rows {
		last := &all[len(all)-1]
		if r.Kind == "mark" {
			last.mark = r.Text
			all = append(all, segment{rows: map[int32][]string{}})
			continue
		}
		p := int32(strings.TrimPrefix(r.Text, "p")[0] - '0')
		last.rows[p] = append(last.rows[p], r.Text)
	}
	return all
}

// current waits until the state page shows what the topic's records leave of
// each key, and nothing else.
func (w *watched) current() {
	w.t.Helper()
	w.shelf.read(w.b)
	want := w.shelf.state()
	var have map[string]string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the page shows\n%q, want\n%q", have, want)
		}
	}()
	testkit.Eventually(w.t, patience, "the state of "+w.shelf.topic, func() bool {
		have = nil
		text := w.state.evaluate(`JSON.stringify(Object.fromEntries([...document.getElementById("items").rows].map((r) => [...r.cells].map((c) => c.textContent))))`)
		if err := json.Unmarshal([]byte(text), &have); err != nil {
			w.t.Fatal(err)
		}
		return maps.Equal(have, want)
	})
}

// away ends the gateway, does something, and starts it again, with an empty memory.
func (w *watched) away(do func()) {
	w.t.Helper()
	w.s.Kill(w.t)
	do()
	w.s.Again(w.t)
	w.s.Ready(w.t, patience)
}

// TestClientsPagesResync: a page that fetches its state anew and one that can't
// both show what is right after what a stream can't get over by itself, by plain
// EventSource; and where nothing is lost, neither does anything.
func TestClientsPagesResync(t *testing.T) {
	for name, befall := range map[string]func(t *testing.T, w *watched){
		"nothing":   nothingLost,
		"retention": recordsExpire,
		"recreated": topicIsAnother,
		"unknown":   placeIsForeign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watch(t)
			befall(t, w)
			w.shown()
			w.current()
		})
	}
}

// nothingLost: records are written while the gateway is away.
func nothingLost(t *testing.T, w *watched) {
	w.away(func() { w.write("first", 40) })
	w.write("first", 10)
	w.want = []segment{{rows: w.rows(map[int32]int64{0: 10, 1: 10})}}
	w.shown()
	w.current()
	if n := w.site.fetches(); n != 1 {
		t.Errorf("the state was fetched %d times, though nothing was lost", n)
	}
}

// recordsExpire: retention takes records while nobody serves them, of one
// partition such as the pages lack, of the other such as they had.
func recordsExpire(t *testing.T, w *watched) {
	w.away(func() {
		w.write("first", 40)
		w.shelf.read(w.b)
		w.b.deleteTo("first", 0, 50)
		w.b.deleteTo("first", 1, 20)
	})
	w.write("first", 10)
	w.marked("Events are missing: they are no longer kept (expired), first/0 from 30 to 49", map[int32]int64{0: 50, 1: 30})
	w.shown()
	w.current()
	if _, had := w.shelf.state()["p0-once"]; !had {
		t.Error("the state holds no record that the stream could not bring: the test shows nothing")
	}
	if n := w.site.fetches(); n != 2 {
		t.Errorf("the state was fetched %d times, want 2", n)
	}
}

// topicIsAnother: the topic is deleted and made anew under the eyes of the
// pages. The site takes a while to notice; until then its state is of the former
// topic, and its id says so.
func topicIsAnother(t *testing.T, w *watched) {
	w.current()
	w.b.remove("first")
	w.b.create("first", 1)
	w.write("first", 20, 0)
	testkit.Eventually(t, patience, "a second fetch of the former state", func() bool { return w.site.fetches() >= 3 })
	w.shelf = w.b.shelve("first")
	w.shelf.read(w.b)
	w.site.serve(w.shelf)
	w.marked("Another topic begins here, of the same name (recreated)", nil)
	w.shown()
	w.current()
	w.write("first", 5, 0)
	w.want[1].rows = w.rows(nil)
}

// placeIsForeign: the gateway serves another topic at the path, so that the
// pages' ids mean nothing to it.
func placeIsForeign(t *testing.T, w *watched) {
	w.write("second", 40)
	w.shelf = w.b.shelve("second")
	w.shelf.read(w.b)
	w.site.serve(w.shelf)
	w.away(func() { w.route("second") })
	const mark = "Events may be missing: the place of this page is not known any more (unknown)"
	w.marked(mark, map[int32]int64{0: 40, 1: 40})
	w.shown()
	w.current()
	w.write("second", 10)
	w.want[1].rows = w.rows(map[int32]int64{0: 40, 1: 40})
}
