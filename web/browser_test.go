//go:build browser

// The tests of this file drive Chromium (or Chrome), headless:
//
//	go test -tags browser ./web
//	go test -tags browser ./web -screens /tmp/screens   # and keep pictures

package web

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var screens = flag.String("screens", "", "write a picture of each page to this `directory`")

// newTab makes the context of a tab in the one browser that all tests share.
var newTab func() (context.Context, context.CancelFunc)

func TestMain(m *testing.M) {
	flag.Parse()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.DisableGPU)
	for _, name := range []string{"disable-quic", "disable-component-update"} {
		options = append(options, chromedp.Flag(name, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...) // a fresh profile
	ctx, end := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "start a browser:", err)
		os.Exit(1)
	}
	newTab = func() (context.Context, context.CancelFunc) { return chromedp.NewContext(ctx) }
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// tab is one page. Its console must stay free of errors.
type tab struct {
	*testing.T
	ctx context.Context
}

func openTab(t *testing.T, address string) tab {
	t.Helper()
	base, stop := newTab()
	t.Cleanup(stop)
	if err := chromedp.Do(base); err != nil { // or the deadline below would end the tab's set-up
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(base, time.Minute)
	t.Cleanup(cancel)
	p := tab{t, ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// Chromium itself reports answers that are not 200 and streams that end;
			// a proxy's 502 has no CORS header either.
			ours := m.Source != "network" && !strings.Contains(m.Text, "blocked by CORS policy")
			if ours && (m.IsException() || m.Type == "error") {
				t.Errorf("console: %v", m)
			}
		}
	}()
	p.do(chromedp.EmulateViewport(1180, 900))
	p.do(chromedp.Navigate(address))
	return p
}

func (p tab) do(a chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, a); err != nil {
		p.Fatal(err)
	}
}

// until waits for a JavaScript condition. ($ is the page's element of an id.)
// It runs inside the page, because the page's policy forbids what chromedp's own Poll does.
func (p tab) until(condition string) {
	p.Helper()
	const script = `new Promise((done) => {
		const $ = (id) => document.getElementById(id), begun = Date.now();
		(function look() {
			if (%s) done("");
			else if (Date.now() - begun > 15000) done(document.body.innerText);
			else setTimeout(look, 10);
		})();
	})`
	shown, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf(script, condition), chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatal(condition, ": ", err)
	}
	if shown != "" {
		p.Fatalf("never came true: %s; the page is\n%s", condition, shown)
	}
}

// text waits until an element shows exactly this.
func (p tab) text(id, want string) {
	p.Helper()
	p.until(fmt.Sprintf(`$(%q).textContent === %q`, id, want))
}

func (p tab) get(script string) string {
	p.Helper()
	s, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script))
	if err != nil {
		p.Fatal(script, ": ", err)
	}
	return s
}

func (p tab) click(css string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(css)))
}

// back does what the back button does. (chromedp.NavigateBack waits for a load,
// which does not happen if the browser has kept the page.)
func (p tab) back() {
	p.Helper()
	history, err := chromedp.Call(p.ctx, cdppage.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		p.Fatal(err)
	}
	entry := history.Entries[history.CurrentIndex-1].ID
	if _, err := chromedp.Call(p.ctx, cdppage.NavigateToHistoryEntry, cdppage.NavigateToHistoryEntryParams{EntryID: entry}); err != nil {
		p.Fatal(err)
	}
}

// picture writes the page as it looks on a desk and in a hand, in light and dark.
func (p tab) picture(name string) {
	p.Helper()
	if *screens == "" {
		return
	}
	for _, size := range []struct {
		name   string
		width  int64
		height int64
	}{{"wide", 1180, 1000}, {"phone", 390, 1300}} {
		p.do(chromedp.EmulateViewport(size.width, size.height))
		for _, scheme := range []string{"light", "dark"} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
				p.Fatal(err)
			}
			png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				p.Fatal(err)
			}
			file := filepath.Join(*screens, fmt.Sprintf("%s-%s-%s.png", name, size.name, scheme))
			if err := os.WriteFile(file, png, 0o644); err != nil {
				p.Fatal(err)
			}
		}
	}
	p.do(chromedp.EmulateViewport(1180, 900))
}

// demo serves the pages for g, on another origin than its streams.
func demo(t *testing.T, g *gateway) (address string) {
	t.Helper()
	s := httptest.NewServer(Handler(&Demo{Stream: g.URL, Broker: "127.0.0.1:19092", Topic: "events"}))
	t.Cleanup(s.Close)
	return s.URL + "/demo"
}

func openDemo(t *testing.T, g *gateway) tab {
	t.Helper()
	p := openTab(t, demo(t, g))
	p.text("state", "open")
	return p
}

func TestDemoShowsRecords(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	p.text("p50", "n/a")
	p.text("kcat", `echo '{"hello":"browser"}' | kcat -P -b 127.0.0.1:19092 -t events`)
	g.produce(5)
	p.text("total", "5")
	p.until(`$("rows").rows.length === 5 && $("empty").hidden`)
	p.until(`/^\d+ ms$/.test($("p50").textContent) && /^\d+ ms$/.test($("max").textContent)`)
	p.until(`$("id").textContent.startsWith("v1:0-58") && Number($("rate").textContent) > 0`)
	if got := p.get(`[...document.getElementById("rows").rows[0].cells].slice(1, 3).map((c) => c.textContent).join("/")`); got != "0/5814" && got != "1/41" {
		t.Errorf("the newest row is of %s", got)
	}
	p.text("missing", "0")
	p.text("twice", "0")
}

func TestDemoResumesAfterDrop(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(4)
	p.text("total", "4")
	p.click("#drop")
	p.text("state", "dropped")
	g.produce(7)
	p.text("state", "open")
	p.text("total", "11")
	p.until(`$("resume").className.includes("good") && $("resume").textContent.includes("7 records produced meanwhile")`)
	g.produce(2)
	p.text("total", "13")
	p.text("missing", "0")
	p.text("twice", "0")
	if asked := g.requests(); len(asked) != 2 || asked[0] != "" || !strings.HasPrefix(asked[1], "v1:0-58") {
		t.Errorf("streams came with %q", asked)
	}

	// A gap and a repetition in the next outage are seen, whatever came before.
	p.until(`!$("drop").disabled`)
	p.do(chromedp.Click(chromedp.CSS(`input[value="0"] + span`)))
	g.lose(3)
	p.click("#drop")
	p.until(`$("state").textContent === "open" && !$("drop").disabled`)
	g.produce(2)
	g.repeat(1)
	p.text("missing", "3")
	p.text("twice", "1")
	p.until(`$("resume").className.includes("bad") && $("resume").textContent.includes("3 missing, 1 twice")`)
}

func TestDemoCountsGapsAndRepetitions(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(4)
	g.lose(3)
	g.produce(4)
	p.text("total", "8")
	p.text("missing", "3")
	p.text("twice", "0")
	g.repeat(2)
	g.produce(2)
	p.text("total", "12")
	p.text("twice", "2")
	p.text("missing", "3")
	p.until(`document.querySelectorAll("#rows .chip.bad").length === 3`)
}

func TestDemoShowsOtherEvents(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(2)
	g.say("delete", "user-17", 1)
	g.say("skipped", `{"topic":"events","partition":1,"offset":44,"size":2097152}`, 1)
	g.say("", `<img src="nothing.png"><b>bold</b>`, 1)
	g.lose(399)
	g.say("resync", `{"reason":"expired","topics":{"events":[{"partition":0,"from":5813,"to":6211},{"partition":1,"from":null,"to":null}]}}`, 0)
	g.produce(2)
	p.text("total", "7")
	p.text("resyncs", "1")
	p.text("missing", "0") // what a resync announces is no gap
	p.text("twice", "0")
	for kind, want := range map[string]string{
		"delete":  "user-17",
		"skipped": "2097152 bytes",
		"resync":  "expired: events/0 5813 to 6211, events/1 ? to ?",
	} {
		p.until(fmt.Sprintf(`document.querySelector("#rows tr[data-kind=%s]")?.textContent.includes(%q)`, kind, want))
	}
	p.until(`$("rows").textContent.includes("<b>bold</b>") && !$("rows").querySelector("img, b")`)
}

func TestDemoReadsEnvelopes(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	for seq := range 3 {
		g.say("", fmt.Sprintf(`{"topic":"events","partition":1,"offset":%d,"timestamp":%d,"key":null,"headers":[],"value":"{\"seq\":%d}"}`, 40+seq, time.Now().UnixMilli(), 2*seq), 1)
	}
	p.text("total", "3")
	p.text("missing", "2") // by the producer's numbers, though the ids are without a gap
	p.until(`/^\d+ ms$/.test($("p50").textContent)`)
}

func TestDemoStaysSmall(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(1)
	g.say("", strings.Repeat("x", 100_000), 1)
	p.until(`$("rows").textContent.includes("xxx…")`)
	g.produce(3000)
	p.text("total", "3,002")
	p.until(`$("rows").rows.length === 100 && $("rows").rows[0].textContent.includes('"seq":' + ` + strconv.FormatInt(g.seq[1]-1, 10) + `)`)
	p.text("missing", "0")
}

func TestDemoInThreeTabs(t *testing.T) {
	g := newGateway(t)
	address := demo(t, g)
	var tabs []tab
	for range 3 {
		p := openTab(t, address)
		p.text("state", "open")
		tabs = append(tabs, p)
	}
	g.produce(9)
	for _, p := range tabs {
		p.text("total", "9")
		p.text("missing", "0")
	}
}

func TestDemoTakesItsAddressFromTheQuery(t *testing.T) {
	g := newGateway(t)
	query := url.Values{"stream": {g.URL}, "broker": {"kafka.test:9092"}, "topic": {"clicks"}}
	s := httptest.NewServer(Handler(&Demo{Stream: "http://127.0.0.1:1/never"}))
	defer s.Close()
	p := openTab(t, s.URL+"/demo?"+query.Encode())
	p.text("stream", g.URL)
	p.text("kcat", `echo '{"hello":"browser"}' | kcat -P -b kafka.test:9092 -t clicks`)
	g.produce(1)
	p.text("state", "open")
}

// Over HTTP/1.1 a browser opens six connections to a host, for all its tabs;
// the seventh waits without a word, unless the page says so.
func TestDemoInSevenTabs(t *testing.T) {
	g := newGateway(t)
	address := demo(t, g)
	first := openTab(t, address)
	first.text("state", "open")
	for range 5 {
		openTab(t, address).text("state", "open")
	}
	seventh := openTab(t, address)
	seventh.until(`!$("hint").hidden && $("hint").textContent.includes("six connections")`)
	seventh.text("state", "connecting")
	first.do(chromedp.Navigate("about:blank"))
	seventh.text("state", "open")
	seventh.until(`$("hint").hidden`)
}

// EventSource gives up for good on an answer such as 502; the client must not.
func TestClientSurvivesRefusals(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(3)
	p.text("total", "3")
	g.drop(2)
	p.until(`$("state").dataset.state === "waiting"`)
	g.produce(4)
	p.text("state", "open")
	p.text("total", "7")
	p.text("missing", "0")
	p.text("twice", "0")
	if asked := g.requests(); len(asked) != 4 || asked[3] != asked[1] || asked[3] == "" {
		t.Errorf("streams came with %q", asked)
	}
	// And what EventSource does alone: the server ends the stream, it comes back.
	g.drop(0)
	g.produce(4)
	p.text("total", "11")
	p.text("missing", "0")
	p.text("twice", "0")
}

// Chromium keeps a page that was left for the back button, and with it an
// EventSource's connection, one of the six.
func TestClientGivesItsConnectionBack(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	g.produce(3)
	p.text("total", "3")
	p.do(chromedp.Navigate("about:blank"))
	g.waitOpen(p, 0)
	g.produce(2)
	p.back()
	g.waitOpen(p, 1)
	// chromedp can't look into a page that came back, but what it asked for
	// says enough: one loaded anew would have had no id.
	if asked := g.requests(); len(asked) != 2 || asked[1] != g.events[2].id {
		t.Errorf("streams came with %q, want the second with %s", asked, g.events[2].id)
	}
}

// client runs script in an empty page of ours, with Tailcast imported.
func client(t *testing.T, g *gateway, script string) string {
	t.Helper()
	s := httptest.NewServer(Handler(nil))
	defer s.Close()
	p := openTab(t, s.URL+"/style.css")
	body := fmt.Sprintf(`import(%q).then(async ({ Tailcast }) => { const url = %q; %s })`, s.URL+"/tailcast.js", g.URL, script)
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](body, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestClientStoresItsID(t *testing.T) {
	g := newGateway(t)
	g.say("price", "1", 1)
	first := g.events[0].id
	g.say("price", "2", 1)
	got := client(t, g, `
		const next = (lastEventId) => new Promise((done) => {
			const s = new Tailcast(url, { lastEventId, storageKey: "k", events: ["price"], onEvent: (e) => { s.close(); done(e); } });
		});
		const second = await next("`+first+`");
		const stored = sessionStorage.getItem("k");
		new Tailcast(url, { storageKey: "k" }).close();
		return [second.event, second.data, stored === second.id].join(" ");`)
	if got != "price 2 true" {
		t.Errorf("got %q", got)
	}
}

func TestClientIsQuietAfterClose(t *testing.T) {
	g := newGateway(t)
	got := client(t, g, `
		const states = [];
		await new Promise((done) => {
			const s = new Tailcast(url, { onState: (state) => {
				states.push(state);
				if (state === "open") { s.close(); s.close(); setTimeout(done, 300); }
			} });
		});
		return states.join(" ");`)
	if got != "connecting open closed" {
		t.Errorf("got %q", got)
	}
}

func TestTally(t *testing.T) {
	s := httptest.NewServer(Handler(nil))
	defer s.Close()
	p := openTab(t, s.URL+"/style.css")
	for _, c := range []struct {
		name string
		ids  string // in order, by spaces; id#seq or id#seq@partition for a numbered record, !id for a resync
		want string // missing/twice
	}{
		{"nothing", "", "0/0"},
		{"one by one", "v1:0-1~a v1:0-2~a v1:0-3~a", "0/0"},
		{"the first says nothing", "v1:0-100~a", "0/0"},
		{"a gap", "v1:0-1~a v1:0-5~a", "3/0"},
		{"a repetition", "v1:0-1~a v1:0-2~a v1:0-2~a", "0/1"},
		{"three repetitions", "v1:0-1~a v1:0-2~a v1:0-3~a v1:0-1~a v1:0-2~a v1:0-3~a v1:0-4~a", "0/3"},
		{"two partitions", "v1:0-1.1-9~a v1:0-2.1-9~a v1:0-2.1-10~a", "0/0"},
		{"two partitions at once", "v1:0-1.1-9~a v1:0-2.1-10~a", "1/0"},
		{"a gap seen in another partition's event", "v1:0-1.1-9#1@0 v1:0-5.1-10#10@1 v1:0-6.1-10#6@0", "4/0"},
		{"a gap in both at once", "v1:0-1.1-9#1@0 v1:0-1.1-10#10@1 v1:0-3.1-12#12@1 v1:0-4.1-12#4@0", "3/0"},
		{"a new partition", "v1:0-1~a v1:0-1.1-0~a v1:0-1.1-1~a", "0/0"},
		{"a new partition with a gap", "v1:0-1~a v1:0-1.1-2~a", "2/0"},
		{"from an empty topic", "v1: v1:0-0~a", "0/0"},
		{"position not known", "v1:0-1.1-*~a v1:0-1.1-500~a v1:0-1.1-501~a", "0/0"},
		{"two topics", "v1:0-1~a,0-7~b v1:0-2~a,0-7~b v1:0-2~a,0-9~b", "1/0"},
		{"a tag is not needed", "v1:0-1 v1:0-2", "0/0"},
		{"ids we don't read", "v2.AAAA v2.BBBB v2.BBBB", "0/0"},
		{"numbers alone", "v2.A#1@0 v2.B#2@0 v2.C#1@1 v2.D#5@0 v2.E#5@0", "2/1"},
		{"numbers and ids agree", "v1:0-1#1@0 v1:0-2#2@0 v1:0-5#5@0 v1:0-5#5@0", "2/1"},
		{"the producer's own gap", "v1:0-1#1@0 v1:0-2#4@0", "2/0"},
		{"numbers of others between", "v1:0-1#1@0 v1:0-2 v1:0-3#2@0", "0/0"},
		{"a resync ahead", "v1:0-1#1@0 !v1:0-90 v1:0-91#91@0", "0/0"},
		{"a resync back", "v1:0-50#50@0 !v1:0-9 v1:0-10#10@0", "0/0"},
		{"a partition that can't be, in a record of somebody else", "v1:0-1#1@0 v1:0-2#7@9 v1:0-3#2@0", "0/0"},
		{"a gap after a resync", "v1:0-1 !v1:0-90 v1:0-93", "2/0"},
	} {
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf(`import(%q).then(({ Tally }) => {
			const tally = new Tally();
			for (const step of %q.split(" ").filter(Boolean)) {
				const [id, seq, p] = step.split(/[#@]/);
				if (id.startsWith("!")) tally.resync(id.slice(1));
				else tally.take(id, { p: p && Number(p), seq: seq && Number(seq) });
			}
			return tally.missing + "/" + tally.twice;
		})`, s.URL+"/tally.js", c.ids), chromedp.EvalAwaitPromise))
		if err != nil || got != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

// The dashboard against a gateway whose counters grow.
func TestDashboard(t *testing.T) {
	var answers, away atomic.Int64
	mux := http.NewServeMux()
	mux.Handle("/", Handler(nil))
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() != 0 {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		json.NewEncoder(w).Encode(statusDoc(answers.Add(1)))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	p := openTab(t, s.URL)
	p.text("state", "not ready")
	p.text("notice", "topic audit: not open")
	p.text("streams", "12,034")
	p.text("connections", "of 12,040 connections")
	p.text("lag", "10")
	p.text("slow", "5")
	p.text("slow-split", "lag 4, stall 1")
	p.text("rejected", "0")
	p.text("rejected-split", "")
	// 2,000 events and 1 MiB more with each answer, one every two seconds or a little later.
	p.until(`(n => n > 700 && n <= 1010)(Number($("events").textContent.replace(",", "")))`)
	p.until(`/^[3-5]\d\d KiB$/.test($("bytes").textContent)`)
	p.until(`$("feeds").rows.length === 2 && $("feeds").textContent.includes("v1:0-5812.1-5790~ab3f9")`)
	p.until(`$("topics").rows.length === 2 && $("topics").textContent.includes("1: 10")`)
	p.until(`$("topics").textContent.includes("no such topic yet") && $("loops").rows.length === 2`)
	p.until(`$("counts").textContent.includes("closed peer")`)
	p.picture("dashboard")
	away.Store(1)
	p.text("state", "no answer")
	p.until(`$("notice").textContent.includes("/status answered 503")`)
	away.Store(0)
	p.text("state", "not ready")
}

// statusDoc is the nth answer of /status, as the admin room writes it.
func statusDoc(n int64) map[string]any {
	type doc = map[string]any
	return doc{
		"version": "v0.1.0", "go_version": "go1.26.8", "started": "2026-11-01T10:00:00Z", "uptime_seconds": 93784 + 2*n,
		"ready": false, "not_ready": []string{"topic audit: not open"},
		"connections": 12040, "streams": 12034, "streams_lagging": 3,
		"events_sent": 2000 * n, "bytes_sent": n << 20,
		"connections_accepted": 20000, "connections_rejected": doc{"max-conns": 0}, "connections_closed": doc{"peer": 7000, "slow": 5},
		"slow_clients_dropped": doc{"lag": 4, "stall": 1, "overwritten": 0}, "resyncs": doc{"unknown": 2, "expired": 0},
		"replays": doc{"log": 40, "kafka": 0}, "http_responses": doc{"200": 19000, "404": 3},
		"records_skipped": 1, "records_dropped": 0, "records_replaced": 0, "event_names_refused": 0,
		"loops": []doc{
			{"loop": 0, "connections": 6020, "streams": 6017, "streams_lagging": 2, "turns": 900 * n, "since_turn_seconds": 0.002, "events_sent": 1000 * n, "bytes_sent": n << 19},
			{"loop": 1, "connections": 6020, "streams": 6017, "streams_lagging": 1, "turns": 800 * n, "since_turn_seconds": 1.25, "events_sent": 1000 * n, "bytes_sent": n << 19},
		},
		"feeds": []doc{
			{"route": "/events", "topics": []string{"events"}, "format": "raw", "subscribers": 12034, "records": 200 * n, "log_bytes": 48 << 20, "log_start": 4096, "log_head": 99 << 20, "position": "v1:0-5812.1-5790~ab3f9"},
			{"route": "/audit", "topics": []string{"audit", "users"}, "format": "envelope", "subscribers": 0, "records": 0, "log_bytes": 0, "log_start": 0, "log_head": 0, "position": ""},
		},
		"kafka": doc{"connected": true, "topics": []doc{
			{"topic": "events", "open": true, "records": 200 * n, "lag": 10, "partitions": []doc{
				{"partition": 0, "next": 5813, "end": 5813, "lag": 0}, {"partition": 1, "next": 5791, "end": 5801, "lag": 10}, {"partition": 2, "next": 4, "end": nil, "lag": nil},
			}},
			{"topic": "audit", "open": false, "error": "no such topic yet", "records": 0, "lag": 0, "partitions": []doc{}},
		}},
	}
}

// TestPictures fills the demo as it looks after a minute's use.
func TestPictures(t *testing.T) {
	g := newGateway(t)
	p := openDemo(t, g)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				g.produce(1 + i/7%3)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	p.until(`Number($("total").textContent) > 20`)
	p.click("#drop")
	p.text("state", "dropped")
	p.picture("demo-dropped")
	p.until(`$("resume").className.includes("good")`)
	if *screens == "" {
		return
	}
	p.until(`Number($("total").textContent) > 300`)
	g.say("delete", "user-17", 1)
	p.picture("demo")
	g.lose(3)
	g.repeat(1)
	g.say("resync", `{"reason":"expired","topics":{"events":[{"partition":0,"from":5813,"to":6211}]}}`, 0)
	p.text("resyncs", "1")
	p.until(`$("missing").textContent !== "0" || $("twice").textContent !== "0"`)
	p.picture("demo-bad")
}
