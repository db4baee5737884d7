//go:build clients

package apptest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// tab is a page in a browser of its own.
type tab struct {
	*testing.T
	ctx context.Context
}

// openTab starts Chromium (or Chrome), headless, with switches of its own, and
// opens a page.
func openTab(t *testing.T, address string, switches ...string) tab {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.DisableGPU)
	for _, name := range append(switches, "disable-quic", "disable-component-update") {
		options = append(options, chromedp.Flag(name, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...) // a fresh profile
	t.Cleanup(stop)
	base, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(base); err != nil {
		t.Fatalf("this test needs Chromium: apt-get install chromium: %v", err)
	}
	ctx, cancel := context.WithTimeout(base, 2*time.Minute)
	t.Cleanup(cancel)
	p := tab{t, ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
	return p
}

// until waits for a JavaScript condition; $ is the page's element of an id. It
// runs inside the page, whose policy forbids what chromedp's own Poll does.
func (p tab) until(condition string) {
	p.Helper()
	const script = `new Promise((done) => {
		const $ = (id) => document.getElementById(id), begun = Date.now();
		(function look() {
			if (%s) done("");
			else if (Date.now() - begun > %d) done(document.body.innerText || "(empty)");
			else setTimeout(look, 10);
		})();
	})`
	text := p.evaluate(fmt.Sprintf(script, condition, patience.Milliseconds()), chromedp.EvalAwaitPromise)
	if text != "" {
		p.Fatalf("never came true: %s; the page is\n%s", condition, text)
	}
}

func (p tab) evaluate(script string, options ...chromedp.EvaluateOption) string {
	p.Helper()
	s, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script, options...))
	if err != nil {
		p.Fatalf("%.200s: %v", script, err)
	}
	return s
}

// TestClientsDemoPage: the demo's page shows records, and after its button has
// dropped the connection none is missing and none came twice.
func TestClientsDemoPage(t *testing.T) {
	s, b := demo(t, "--rate", "100")
	p := openTab(t, "http://"+s.Admin+"/demo")
	p.until(`$("state").textContent === "open" && Number($("rate").textContent) > 50`)
	p.until(`$("rows").rows.length === 100 && /^v1:0-\d+\.1-\d+\.2-\d+~.{5}$/.test($("id").textContent)`)
	p.until(`/^\d+ ms$/.test($("p50").textContent)`)
	if want := "echo '{\"hello\":\"browser\"}' | kcat -P -b " + b.addr + " -t events"; p.evaluate(`document.getElementById("kcat").textContent`) != want {
		t.Errorf("the page does not say %s", want)
	}
	for range 2 {
		p.evaluate(`document.getElementById("drop").click(), ""`)
		p.until(`$("state").textContent === "dropped"`)
		p.until(`$("state").textContent === "open" && $("resume").textContent.includes("records produced meanwhile arrived")`)
		p.until(`$("resume").className.includes("good")`)
		t.Log(p.evaluate(`document.getElementById("resume").textContent`))
	}
	for id, want := range map[string]string{"missing": "0", "twice": "0", "resyncs": "0"} {
		if got := p.evaluate(`document.getElementById("` + id + `").textContent`); got != want {
			t.Errorf("the page has %s %s", got, id)
		}
	}
}

// eventSourcePage is a page that keeps what a plain EventSource tells it.
const eventSourcePage = `<!doctype html><title>EventSource</title><body><script>
var opens = 0, got = [], last = 0;
var source = new EventSource(new URLSearchParams(location.search).get("stream"));
source.onopen = () => opens++;
for (const type of ["message", "resync"]) {
	source.addEventListener(type, (e) => {
		got.push({Type: type, Data: e.data, LastEventID: e.lastEventId});
		if (/^\d+\/\d+\/last\n/.test(e.data)) last++;
	});
}
</script>`

// origin serves the page, on an origin that is not the stream's.
func origin(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, eventSourcePage)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// judge takes what the page got for what a follower got that came before the
// first record, and returns the follower.
func (p tab) judge() *follower {
	p.Helper()
	var events []ssetest.Event
	if err := json.Unmarshal([]byte(p.evaluate(`JSON.stringify(got)`)), &events); err != nil {
		p.Fatal(err)
	}
	f := &follower{have: map[int32]int64{}}
	s := reading{f: f}
	for i, e := range events {
		if err := s.event(e); err != nil {
			p.Fatalf("event %d, %.200q: %v", i, e, err)
		}
	}
	return f
}

// TestClientsEventSource cuts the connection of a page's EventSource, by RST
// and by FIN, under load: it reconnects by itself, across origins, and misses
// nothing.
func TestClientsEventSource(t *testing.T) {
	page := origin(t)
	b := started(t, 3, "page")
	s := ready(t, b, "--route", "/events=page", "--cors-origins", page)
	between := startProxy(t, s.Addr)
	p := openTab(t, page+"/?stream=http://"+between.addr+"/events")
	p.until(`opens === 1`)
	l := b.load("page", 3, 200)
	for i := range 4 {
		p.until(fmt.Sprintf(`opens === %d && got.length >= %d`, i+1, 100*(i+1)))
		between.cut(i%2 == 0)
	}
	p.until(`opens === 5`)
	l.end(t)
	p.until(`last === 3`)
	f := p.judge()
	t.Logf("%d records over %d connections", f.records.Load(), between.connections())
	if len(f.reasons) > 0 {
		t.Errorf("resyncs %q", f.reasons)
	}
}

// TestClientsEventSourceRestart stops, and then kills the gateway under a page
// and starts it again: its EventSource reconnects by itself, and misses
// nothing.
func TestClientsEventSourceRestart(t *testing.T) {
	page := origin(t)
	b := started(t, 3, "page")
	s := ready(t, b, "--route", "/events=page", "--cors-origins", page)
	p := openTab(t, page+"/?stream=http://"+s.Addr+"/events")
	p.until(`opens === 1`)
	l := b.load("page", 3, 200)
	for i, end := range []func(){
		func() { s.Stop(t, patience) },
		func() { s.Kill(t) },
	} {
		p.until(fmt.Sprintf(`opens === %d && got.length >= %d`, i+1, 100*(i+1)))
		end()
		missed := l.acked.Load() + 50
		testkit.Eventually(t, patience, "records that nobody serves", func() bool { return l.acked.Load() >= missed })
		s.Again(t)
	}
	p.until(`opens === 3`)
	l.end(t)
	p.until(`last === 3`)
	f := p.judge()
	t.Logf("%d records", f.records.Load())
	if len(f.reasons) > 0 {
		t.Errorf("resyncs %q", f.reasons)
	}
}

// TestClientsEventSourceWhileBrokerIsAway: a stream that opens while Kafka is
// away begins without an id. When it is cut then, the page still comes back
// with the id it had.
func TestClientsEventSourceWhileBrokerIsAway(t *testing.T) {
	page := origin(t)
	b := started(t, 1, "page")
	s := ready(t, b, "--route", "/events=page", "--cors-origins", page)
	between := startProxy(t, s.Addr)
	p := openTab(t, page+"/?stream=http://"+between.addr+"/events")
	p.until(`opens === 1`)
	b.produce("page", 0, 20)
	p.until(`got.length === 20`)
	s.Kill(t)
	b.produce("page", 0, 20)
	b.stop()
	b.forget()
	s.Again(t)
	p.until(`opens === 2`)
	between.cut(false)
	p.until(`opens === 3`)
	b.start()
	s.Ready(t, patience)
	b.produce("page", 0, 20)
	p.until(`got.length === 60`)
	if f := p.judge(); len(f.reasons) > 0 || f.records.Load() != 60 {
		t.Errorf("%d records, resyncs %q", f.records.Load(), f.reasons)
	}
}
