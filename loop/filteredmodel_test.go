package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFilteredModel drives filtered streams at random: records, full sockets,
// clients that leave and come back where they were, losses, heartbeats and
// ends. Every client must get what a naive reading of its filter says, once
// each and in order. It prints its seed.
func TestFilteredModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			newFilterModel(t, seed).run()
		})
	}
}

type filterModel struct {
	*rig
	rand    *rand.Rand
	clients []*filterClient
	made    int
	records []madeRecord
}

type madeRecord struct {
	key, region, tenant string
	data                string
}

type filterClient struct {
	target string
	wants  func(madeRecord) bool
	p      *peer // nil: away
	id     string
	from   int // records made before it came first
	got    []string
}

func newFilterModel(t *testing.T, seed uint64) *filterModel {
	m := &filterModel{rand: rand.New(rand.NewPCG(seed, 2))}
	m.rig = newRig(t, func(as *setup) {
		as.filters = filters
		as.Stall = 24 * time.Hour
	})
	m.sndbuf = 4096
	m.open(1)
	users, regions, tenants := []string{"u0", "u1", "u2", "u3"}, []string{"eu", "us"}, []string{"1", "2", "3"}
	for range 12 {
		u, rg, tn := users[m.rand.IntN(4)], regions[m.rand.IntN(2)], tenants[m.rand.IntN(3)]
		options := []*filterClient{
			{target: "/key/" + u, wants: func(r madeRecord) bool { return r.key == u }},
			{target: "/header?region=" + rg, wants: func(r madeRecord) bool { return r.region == rg }},
			{target: "/json?tenant=" + tn, wants: func(r madeRecord) bool { return r.tenant == tn }},
			{target: "/and/" + u + "?region=" + rg, wants: func(r madeRecord) bool { return r.key == u && r.region == rg }},
			{target: "/or/" + u + "?tenant=" + tn, wants: func(r madeRecord) bool { return r.key == u || r.tenant == tn }},
			{target: "/events", wants: func(madeRecord) bool { return true }},
		}
		m.clients = append(m.clients, options[m.rand.IntN(len(options))])
	}
	return m
}

func (m *filterModel) run() {
	for range 400 {
		m.step()
	}
	m.settle()
	for _, c := range m.clients {
		if c.p == nil {
			m.come(c)
		}
		for n, still := 0, 0; still < 3; n++ {
			before := len(c.got)
			m.read(c, 1<<20)
			m.later(lookRestMax)
			if still++; c.p.c.list == &m.l.lagging || c.p.c.state != stateStream || len(c.got) != before {
				still = 0
			}
			if n > 10_000 {
				m.t.Fatalf("%s comes to no end", c.target)
			}
		}
		m.check(c)
	}
	for _, n := range []closeReason{closeLag, closeStall, closeOverwritten} {
		if m.l.counts.closed[n] > 0 {
			m.t.Errorf("closed: %v", m.l.counts.closed)
		}
	}
}

func (m *filterModel) step() {
	c := m.clients[m.rand.IntN(len(m.clients))]
	switch n := m.rand.IntN(100); {
	case n < 35:
		for range 1 + m.rand.IntN(8) {
			m.make()
		}
	case n < 60:
		m.turn()
	case n < 65:
		m.later(time.Duration(m.rand.IntN(20)) * time.Second)
	case n < 90:
		if c.p != nil {
			m.read(c, m.rand.IntN(10_000))
		} else {
			m.come(c)
		}
	case n < 95:
		if c.p != nil { // with what it has read: the rest is lost on the way
			c.p.hangUp()
		}
		m.come(c)
	case n < 97:
		if c.p != nil && c.p.c.state == stateStream {
			m.l.end(c.p.c, closeAge)
		}
	}
}

// make makes one record; m.put flushes.
func (m *filterModel) make() {
	r := madeRecord{
		key:    fmt.Sprint("u", m.rand.IntN(6)),
		region: []string{"eu", "us", "-"}[m.rand.IntN(3)],
		tenant: strconv.Itoa(m.rand.IntN(6)),
	}
	r.data = fmt.Sprintf(`{"tenant":{"id":%s},"n":%d,"pad":%q}`, r.tenant, m.made, strings.Repeat("x", m.rand.IntN(1000)))
	m.made++
	m.records = append(m.records, r)
	m.put(r.key, r.data, "region", r.region)
}

// come opens the client's stream where it was.
func (m *filterModel) come(c *filterClient) {
	var last []string
	if c.id != "" {
		last = append(last, "Last-Event-ID: "+c.id)
	} else { // it has read nothing yet
		c.from, c.got = m.made, nil
	}
	c.p = m.dial()
	c.p.get(c.target, last...)
	m.read(c, 100) // the head and the first block
}

// read lets the client read about n bytes.
func (m *filterModel) read(c *filterClient, n int) {
	c.p.buf = make([]byte, max(n, 1))
	raw, ended := c.p.sip()
	events, err := c.p.stream.Feed([]byte(raw))
	if err != nil {
		m.t.Fatalf("%s: %v in %.200q", c.target, err, raw)
	}
	for _, e := range events {
		c.got = append(c.got, e.Data)
	}
	if id := c.p.stream.Parser.LastEventID(); id != "" {
		c.id = id
	}
	if ended {
		c.p.hangUp()
		m.come(c)
	}
}

// check compares what a client got with what it should have.
func (m *filterModel) check(c *filterClient) {
	m.t.Helper()
	var want []string
	for _, r := range m.records[c.from:] {
		if c.wants(r) {
			want = append(want, r.data)
		}
	}
	if !slices.Equal(c.got, want) {
		i := 0
		for i < len(want) && i < len(c.got) && want[i] == c.got[i] {
			i++
		}
		m.t.Errorf("%s: %d events, want %d; the first that differs is %d: %.40q", c.target, len(c.got), len(want), i, slices.Concat(c.got[i:], want[i:], []string{"nothing"})[0])
	}
}
