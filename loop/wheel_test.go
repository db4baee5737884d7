package loop

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestWheel holds the wheel against a map of deadlines: none comes before its
// time, and all come with the first advance that has passed it by a tick. Run
// a seed again with -run 'TestWheel/seed=N'.
func TestWheel(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := &wheelModel{t: t, rand: rand.New(rand.NewPCG(seed, 3)), due: map[*conn]time.Duration{}}
			for range 60 {
				m.conns = append(m.conns, &conn{})
			}
			for range 2000 {
				m.step()
			}
			m.now, m.calm = m.now+20*time.Minute, true
			m.advance(1 << 20)
			if len(m.due) > 0 || m.wheel.n != 0 {
				t.Fatalf("%d deadlines never came; the wheel counts %d", len(m.due), m.wheel.n)
			}
		})
	}
}

type wheelModel struct {
	t     *testing.T
	rand  *rand.Rand
	wheel wheel
	now   time.Duration
	conns []*conn
	due   map[*conn]time.Duration
	calm  bool // what comes sets nothing
}

func (m *wheelModel) step() {
	switch c := m.any(); m.rand.IntN(8) {
	case 0, 1, 2, 3:
		m.set(c)
	case 4:
		m.clear(c)
	case 5:
		m.now += time.Duration(m.rand.Int64N(int64(2 * wheelTick))) // within a tick or two
		m.advance(1 + m.rand.IntN(5))
	case 6:
		m.now += time.Duration(m.rand.Int64N(int64(5 * time.Second)))
		m.advance(1 << 20)
	case 7:
		m.now += time.Duration(m.rand.Int64N(int64(2 * time.Minute))) // more than a round, unseen by the wheel
	}
}

func (m *wheelModel) any() *conn { return m.conns[m.rand.IntN(len(m.conns))] }

func (m *wheelModel) set(c *conn) {
	d := time.Duration(m.rand.Int64N(int64(10 * time.Second)))
	switch m.rand.IntN(10) {
	case 0:
		d = wheelSlots * wheelTick // a whole round: the slot that is being looked at
	case 1:
		d = time.Duration(m.rand.Int64N(int64(10 * time.Minute)))
	case 2:
		d = 0
	}
	m.wheel.set(c, m.now+d)
	m.due[c] = m.now + d
}

func (m *wheelModel) clear(c *conn) {
	m.wheel.clear(c)
	delete(m.due, c)
}

// advance checks what comes. The callback sets and clears deadlines, of the
// connection and of others.
func (m *wheelModel) advance(most int) {
	m.t.Helper()
	called := 0
	more := m.wheel.advance(m.now, most, func(c *conn) {
		called++
		at, ok := m.due[c]
		switch {
		case !ok:
			m.t.Fatal("a deadline that is not set came")
		case at > m.now:
			m.t.Fatalf("a deadline came %v early", at-m.now)
		case c.due != 0:
			m.t.Fatal("a deadline that came is still set")
		}
		delete(m.due, c)
		if m.calm {
			return
		}
		switch m.rand.IntN(4) {
		case 0:
			m.set(c)
		case 1:
			m.clear(m.any())
		case 2:
			m.set(m.any())
		}
	})
	if called > most {
		m.t.Fatalf("%d deadlines came, of %d at most", called, most)
	}
	if more != (m.wheel.ripe != nil) || m.wheel.n != len(m.due) {
		m.t.Fatalf("more %v with ripe %p; the wheel counts %d of %d", more, m.wheel.ripe, m.wheel.n, len(m.due))
	}
	for c, at := range m.due {
		if !more && at <= m.now-wheelTick && c.due <= m.wheel.now {
			m.t.Fatalf("a deadline is %v late", m.now-at)
		}
	}
}

// A wheel that nobody advanced for a while must not fire early: before a first
// deadline a loop turns once a second only.
func TestWheelIsNotEarlyAfterIdling(t *testing.T) {
	var w wheel
	c := &conn{}
	w.set(c, time.Second+50*time.Millisecond)
	var fired []time.Duration
	for now := time.Duration(0); now < 3*time.Second; now += wheelTick / 4 {
		w.advance(now, 1, func(*conn) { fired = append(fired, now) })
	}
	if len(fired) != 1 || fired[0] < time.Second+50*time.Millisecond || fired[0] > 1100*time.Millisecond+wheelTick {
		t.Fatalf("fired at %v", fired)
	}
}

func BenchmarkWheelSet(b *testing.B) {
	var w wheel
	conns := make([]conn, 10_000)
	i := 0
	for b.Loop() {
		w.set(&conns[i], time.Duration(i)*time.Millisecond+5*time.Second)
		if i++; i == len(conns) {
			i = 0
		}
	}
}
