package auth

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func addr(text string) netip.Addr { return laneOf(netip.MustParseAddr(text)) }

// Addresses take turns, however many checks one of them has.
func TestPoolTakesTurns(t *testing.T) {
	p := newPool()
	put := func(a, token string) {
		if !p.put(&Check{addr: addr(a), token: token, bytes: 1}) {
			t.Fatal(token)
		}
	}
	for _, token := range []string{"a1", "a2", "a3", "a4"} {
		put("10.0.0.1", token)
	}
	put("10.0.0.2", "b1")
	put("2001:db8::1", "c1")
	put("2001:db8::2", "c2") // the same network
	put("10.0.0.2", "b2")
	var got []string
	for range 8 {
		c := p.take()
		got = append(got, c.token)
		p.finish(c)
	}
	if want := strings.Fields("a1 b1 c1 a2 b2 c2 a3 a4"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if p.bytes != 0 || len(p.lanes) != 0 || len(p.turn) != 0 {
		t.Errorf("left: %d bytes, %d lanes", p.bytes, len(p.lanes))
	}
}

// What waits is bounded, for an address and in all. A check counts until it is
// finished, in work or waiting for keys.
func TestPoolBounds(t *testing.T) {
	p := newPool()
	const size = 1 << 20
	fill := func(a string) (all []*Check) {
		for c := (&Check{addr: addr(a), bytes: size}); p.put(c); c = (&Check{addr: addr(a), bytes: size}) {
			all = append(all, c)
		}
		return all
	}
	one := fill("10.0.0.1")
	if len(one) != addrBytesMax/size {
		t.Errorf("one address: %d", len(one))
	}
	for _, a := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		fill(a)
	}
	if n := len(fill("10.0.0.5")); n != 0 {
		t.Errorf("%d over the limit of all", n)
	}
	taken := p.take()
	if p.put(&Check{addr: addr("10.0.0.1"), bytes: size}) {
		t.Error("a check in work does not count")
	}
	p.finish(taken)
	if !p.put(&Check{addr: addr("10.0.0.1"), bytes: size}) {
		t.Error("a finished check still counts")
	}
	p.close()
	if p.take() != nil || p.put(&Check{addr: addr("10.0.0.9"), bytes: 1}) {
		t.Error("closed, and goes on")
	}
}

// What waits for new keys is bounded apart, for an address and in all, so that
// made-up names of keys leave room for tokens by keys that are known.
func TestPoolParks(t *testing.T) {
	p := newPool()
	const size = 1 << 18
	var parked []*Check
	park := func(a string) bool {
		c := &Check{addr: addr(a), bytes: size}
		if !p.put(c) || p.take() != c {
			t.Fatalf("%s: no room for a check that is not parked", a)
		}
		if p.park(c) {
			parked = append(parked, c)
			return true
		}
		p.finish(c)
		return false
	}
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		n := 0
		for park(a) {
			n++
		}
		if n != addrParkedMax/size {
			t.Errorf("%s: %d are parked", a, n)
		}
	}
	if park("10.0.0.5") {
		t.Error("one more than may be parked in all")
	}
	p.again(parked)
	for range parked {
		p.take()
	}
	if before := len(parked); !park("10.0.0.1") {
		t.Error("10.0.0.1: no room for another when those that waited are in work")
	} else {
		p.again(parked[before:])
		p.take()
	}
	for _, c := range parked {
		p.finish(c)
	}
	if p.parked != 0 || p.bytes != 0 || len(p.lanes) != 0 {
		t.Errorf("left: %d bytes parked, %d in all, %d lanes", p.parked, p.bytes, len(p.lanes))
	}
	if !park("10.0.0.5") {
		t.Error("no room behind all others")
	}
}

// The cache keeps at least the latest cacheMax, and twice as many at most.
func TestCache(t *testing.T) {
	var c cache
	hash := func(i int) (h [32]byte) { h[0], h[1], h[2] = byte(i), byte(i>>8), byte(i>>16); return h }
	for i := range 3 * cacheMax {
		c.put(hash(i), &Token{})
		if i >= 10 && c.get(hash(5)) == nil { // in use
			t.Fatalf("%d: forgot what is in use", i)
		}
		if i >= 10 && i%1000 == 0 {
			_ = c.get(hash(i - 1))
		}
	}
	if n := len(c.young) + len(c.old); n > 2*cacheMax {
		t.Errorf("%d entries", n)
	}
	for i := 2*cacheMax + 2; i < 3*cacheMax; i++ {
		if c.get(hash(i)) == nil {
			t.Fatalf("forgot %d of the latest", i)
		}
	}
	if c.get(hash(100)) != nil {
		t.Error("an old one is there")
	}
}
