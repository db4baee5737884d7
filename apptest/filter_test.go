package apptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

const filterRoutes = `routes:
  - {path: "/users/{user}", topic: %[1]s, filter: [{key: "{user}"}]}
  - {path: /regions, topic: %[1]s, filter: [{headers: {region: "{region}"}}]}
  - {path: /tenants, topic: %[1]s, filter: [{json: {tenant.id: "{tenant}"}}]}
  - {path: "/both/{user}", topic: %[1]s, filter: [{key: "{user}", headers: {region: eu}}]}
  - {path: "/either/{user}", topic: %[1]s, filter: [{key: "{user}"}, {json: {tenant.id: "{tenant}"}}]}
  - {path: /all, topic: %[1]s}
`

// filtering starts a server with routes that filter topic.
func filtering(t *testing.T, b *broker, topic string) *testkit.Server {
	t.Helper()
	return ready(t, b, "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf(filterRoutes, topic)))
}

// made is one record of these tests.
type made struct{ user, region, tenant string }

func (m made) record(topic string, n int) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Partition: int32(n % 2), Key: []byte(m.user),
		Headers: []kgo.RecordHeader{{Key: "region", Value: []byte(m.region)}},
		Value:   fmt.Appendf(nil, `{"tenant":{"id":%s},"n":%d,"user":%q}`, m.tenant, n, m.user),
	}
}

// filterCases are requests, and what they are to get.
var filterCases = []struct {
	target string
	wants  func(made) bool
}{
	{"/users/u1", func(m made) bool { return m.user == "u1" }},
	{"/users/u%32", func(m made) bool { return m.user == "u2" }},
	{"/users/u", func(made) bool { return false }},
	{"/regions?region=eu", func(m made) bool { return m.region == "eu" }},
	{"/tenants?tenant=2", func(m made) bool { return m.tenant == "2" }},
	{"/both/u3", func(m made) bool { return m.user == "u3" && m.region == "eu" }},
	{"/either/u3?tenant=4", func(m made) bool { return m.user == "u3" || m.tenant == "4" }},
	{"/all", func(made) bool { return true }},
}

// round produces n records and returns them; from is the number of the first.
func (b *broker) round(topic string, from, n int) (all []made) {
	var recs []*kgo.Record
	for i := from; i < from+n; i++ {
		m := made{fmt.Sprint("u", i%7), []string{"eu", "us"}[i%2], strconv.Itoa(i % 5)}
		all = append(all, m)
		recs = append(recs, m.record(topic, i))
	}
	b.send(recs...)
	return all
}

// wantMade reads what a stream is to get of all, behind an id. Record n has
// offset n/2 in partition n%2.
func wantMade(t *testing.T, c *testkit.Conn, wants func(made) bool, all []made, id string) {
	t.Helper()
	at, err := offsetsOf(id)
	if err != nil {
		t.Fatal(err)
	}
	var missing [2][]int // by partition, in order
	for n, m := range all {
		if last, ok := at[int32(n%2)]; wants(m) && (!ok || int64(n/2) > last) {
			missing[n%2] = append(missing[n%2], n)
		}
	}
	for len(missing[0])+len(missing[1]) > 0 {
		e := c.Next(t, patience)
		var got struct{ N int }
		if err := json.Unmarshal([]byte(e.Data), &got); err != nil || e.Type != "message" {
			t.Fatalf("%+v: %v", e, err)
		}
		due := &missing[got.N%2]
		if len(*due) == 0 || (*due)[0] != got.N {
			t.Fatalf("record %d is not the stream's next, which are %v", got.N, missing)
		}
		*due = (*due)[1:]
	}
}

// filtered are streams of filterCases.
type filtered []*testkit.Conn

func openFiltered(t *testing.T, s *testkit.Server, ids []string) (all filtered) {
	t.Helper()
	for i, tc := range filterCases {
		var fields []string
		if ids != nil {
			fields = append(fields, "Last-Event-ID: "+ids[i])
		}
		all = append(all, open(t, s, tc.target, fields...))
	}
	return all
}

// want waits until each stream has what it is to get behind ids.
func (fs filtered) want(t *testing.T, all []made, ids []string) {
	t.Helper()
	for i, tc := range filterCases {
		wantMade(t, fs[i], tc.wants, all, ids[i])
	}
}

func (fs filtered) ids() (all []string) {
	for _, c := range fs {
		all = append(all, c.Stream.Parser.LastEventID())
	}
	return all
}

// TestFilters follows records by every kind of filter: live, resumed from
// memory, on another node, which saw them in another order, and on the first
// after it was killed, which holds none of them. What a stream must not have
// would be taken for one of its next records.
func TestFilters(t *testing.T) {
	t.Parallel()
	filters(t, started(t, 2, "filtered"), "filtered")
}

func filters(t *testing.T, b *broker, topic string) {
	one, two := filtering(t, b, topic), filtering(t, b, topic)
	live := openFiltered(t, one, nil)
	begin := live.ids()
	all := b.round(topic, 0, 200)
	live.want(t, all, begin)
	middle := live.ids()
	all = append(all, b.round(topic, len(all), 100)...)
	live.want(t, all, middle)

	openFiltered(t, one, begin).want(t, all, begin)
	openFiltered(t, one, middle).want(t, all, middle)
	there, late := openFiltered(t, two, begin), openFiltered(t, two, middle)
	there.want(t, all, begin)
	late.want(t, all, middle)
	one.Kill(t)
	one.Again(t)
	one.Ready(t, patience)
	back := openFiltered(t, one, begin)
	back.want(t, all, begin)
	last := openFiltered(t, one, middle)
	last.want(t, all, middle)

	for _, fs := range []filtered{there, late, back, last} {
		ids := fs.ids()
		fs.want(t, all, ids) // which is nothing
	}
	ids := [][]string{there.ids(), late.ids(), back.ids(), last.ids()}
	all = append(all, b.round(topic, len(all), 70)...)
	for i, fs := range []filtered{there, late, back, last} {
		fs.want(t, all, ids[i])
	}
}

// TestFilterRefusals: a request that leaves out what a filter compares gets an
// answer that browsers take for final, and no stream.
func TestFilterRefusals(t *testing.T) {
	t.Parallel()
	s := filtering(t, started(t, 2, "refused"), "refused")
	for target, reason := range map[string]string{
		"/regions":                  `the query has no parameter "region"`,
		"/regions?region=":          `the query has no parameter "region"`,
		"/tenants?tenant=1&tenant=": `the query has parameter "tenant" more than once`,
		"/either/u1":                `the query has no parameter "tenant"`,
	} {
		resp, err := http.Get("http://" + s.Addr + target)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), reason) {
			t.Errorf("%s: %s, %q, %v", target, resp.Status, body, err)
		}
	}
}
