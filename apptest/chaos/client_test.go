package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// got is one record as a client or the ledger saw it.
type got struct {
	offset uint32
	sum    uint32 // of key and value; skipped for one that was too large
	key    uint32 // keySum; 0 where a client is not told it
	gone   bool   // a tombstone
}

// skipped stands for the value of a record larger than --max-event.
const skipped = math.MaxUint32

// sum is how values are compared.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, value)
}

// keySum is how keys are compared.
func keySum(key []byte) uint32 { return crc32.ChecksumIEEE(key) }

// jump is a place where a stream went on elsewhere, as a resync event said.
type jump struct {
	at     int   // records of the lane before it
	from   int64 // first offset that was lost
	to     int64 // where the stream went on
	reason string
}

// notice is the data of a resync event.
type notice struct {
	Reason string
	Topics map[string][]struct {
		Partition int32
		From, To  int64
	}
}

// lost is what a resync event says of a lane; both ends are lost.
type lost struct {
	lane     int
	from, to int64
}

// told is a resync event, and where the client was and went on.
type told struct {
	reason        string
	lost          []lost
	before, after vector
	anew          []int // topics that are others than before, by their tags
}

func (r told) String() string {
	return fmt.Sprintf("resync %s, lost %+v, topics anew %v, from %v on to %v", r.reason, r.lost, r.anew, r.before, r.after)
}

// client follows its topics as a browser does: it keeps the id of the last
// whole block, and sends it when it connects anew.
type client struct {
	run  *run
	n    int
	kind kind
	draw *rand.Rand

	id      string
	pos     vector // that id's
	tags    [topicsMax]tag
	begun   bool // pos is known
	start   vector
	got     [lanesMax][]got
	jumps   [lanesMax][]jump
	reasons []string // of resync events
	last    int      // the node of the last connection; -1: none yet

	// Of the connection.
	placed bool // its first id came
	moved  bool // that was another than the client's: a resync is due
	before vector

	records atomic.Int64
	resyncs atomic.Int64
	at      atomic.Int64 // pos[0], for others to wait for
	done    atomic.Bool
	failed  error // what it objects to; read when done

	forgotten int // records it got and dropped, since a snapshot began again
	packed    int // ids of the second form
	trace     trace
}

// trace is what a client saw last, for those who have to find out why.
type trace struct {
	lines [24]string
	n     int
}

func (tr *trace) add(format string, args ...any) {
	tr.lines[tr.n%len(tr.lines)] = time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	tr.n++
}

func (tr *trace) String() string {
	var b strings.Builder
	for i := max(0, tr.n-len(tr.lines)); i < tr.n; i++ {
		fmt.Fprintf(&b, "\t%s\n", tr.lines[i%len(tr.lines)])
	}
	return b.String()
}

// follow connects again and again until the run's end is read.
func (c *client) follow(ctx context.Context) {
	defer c.done.Store(true)
	for ctx.Err() == nil && !c.finished() {
		if err := c.connect(ctx); err != nil {
			c.failed = fmt.Errorf("client %d at %q: %w", c.n, c.id, err)
			return
		}
	}
}

// finished reports whether the client has all there will ever be.
func (c *client) finished() bool {
	end := c.run.end.Load()
	if end == nil || !c.begun || c.moved {
		return false
	}
	for l, next := range end {
		if c.pos[l] < next && c.kind.has(l) {
			return false
		}
	}
	return true
}

// plan is what a client does to one connection.
type plan struct {
	kind  string
	bytes int           // to read before it does it; -1: no matter
	after time.Duration // time before it does it; 0: no matter
	pause time.Duration // offline after the end
	reset bool          // it ends the connection by RST
	slow  bool          // it reads in small sips
}

// planned draws a plan. The first clients of a run are steady: only the
// gateways end their streams.
func (c *client) planned() plan {
	d := c.draw
	p := plan{kind: "steady", bytes: -1}
	if c.n%8 == 0 || c.run.o.steady || c.run.end.Load() != nil {
		return p
	}
	p.reset = d.IntN(2) == 0
	switch k := d.IntN(100); {
	case k < 45:
		p.kind, p.bytes = "cut", 1+int(math.Exp(d.Float64()*math.Log(400_000)))
	case k < 55:
		p.kind, p.after = "leave", time.Duration(d.IntN(3000))*time.Millisecond
	case k < 75:
		p.kind, p.after = "offline", time.Duration(d.IntN(3000))*time.Millisecond
		p.pause = time.Duration(d.IntN(int(c.run.o.offline)))
	case k < 85:
		p.kind, p.bytes = "stall", d.IntN(100_000)
	case k < 95:
		p.kind, p.slow, p.bytes = "slow", true, 1+d.IntN(200_000)
	default:
		p.kind, p.after = "stay", 5*time.Second+time.Duration(d.IntN(10_000))*time.Millisecond
	}
	return p
}

// connect follows one connection to its end; the error is what the client
// objects to, not what befell the connection.
func (c *client) connect(ctx context.Context) error {
	p := c.planned()
	node := c.draw.IntN(len(c.run.nodes))
	dialer := net.Dialer{Timeout: 2 * time.Second}
	if p.kind == "stall" || p.slow {
		dialer.Control = smallWindow
	}
	conn, err := dialer.DialContext(ctx, "tcp", c.run.nodes[node].Addr)
	if err != nil {
		c.run.count("refused", 1)
		c.sleep(ctx, 20*time.Millisecond+time.Duration(c.draw.IntN(100))*time.Millisecond)
		return nil
	}
	c.run.count("connects", 1)
	if c.id != "" {
		c.run.count("resumes", 1)
		if node != c.last {
			c.run.count("node switches", 1)
		}
	}
	c.last = node
	if p.kind != "steady" {
		c.run.count("client "+p.kind, 1)
	}
	defer conn.Close()
	keep := context.AfterFunc(ctx, func() { conn.Close() })
	defer keep()
	c.trace.add("%s on node %d (%s) from %q", p.kind, node, c.run.nodes[node].Addr, c.id)
	if _, err := io.WriteString(conn, c.request()); err != nil {
		return nil
	}
	if err := c.read(ctx, conn.(*net.TCPConn), p); err != nil {
		return err
	}
	if c.moved {
		// A browser has taken the id, and nobody told the page.
		return fmt.Errorf("the stream's first id was not the client's %v, and the connection ended before a resync event", c.before)
	}
	if p.reset {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	conn.Close()
	c.sleep(ctx, p.pause)
	return nil
}

// smallWindow makes a stalled reader show soon.
func smallWindow(_, _ string, rc syscall.RawConn) error {
	return rc.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
	})
}

// request is the head of the next request.
func (c *client) request() string {
	target, header := c.kind.target, ""
	switch {
	case c.id == "":
	case c.draw.IntN(2) == 0:
		sep := "?"
		if strings.Contains(target, "?") {
			sep = "&"
		}
		target += sep + "lastEventId=" + url.QueryEscape(c.id)
	default:
		header = "Last-Event-ID: " + c.id + "\r\n"
	}
	version := "1.1"
	if c.draw.IntN(16) == 0 {
		version = "1.0"
	}
	return "GET " + target + " HTTP/" + version + "\r\nHost: chaos\r\n" + header + "\r\n"
}

// pollEvery is how often a client without anything to read looks up.
const pollEvery = 250 * time.Millisecond

// read reads until the connection's end, or the plan's.
func (c *client) read(ctx context.Context, conn *net.TCPConn, p plan) error {
	c.placed, c.moved = false, false
	each := func(block []byte) error {
		e, err := parse(block)
		if !c.placed || len(e.data) == 0 || string(e.name) == "resync" {
			c.trace.add("%.200q", block)
		}
		if err == nil {
			err = c.take(e)
		}
		if err != nil {
			return fmt.Errorf("%w in block %.300q", err, block)
		}
		return nil
	}
	var s blocks
	buf := make([]byte, 16<<10)
	began := time.Now()
	for !c.finished() {
		b := buf
		if p.bytes >= 0 {
			if p.bytes == 0 {
				switch {
				case p.kind != "stall":
					return nil
				case !c.stalled(ctx):
					return nil
				}
				p.bytes = -1
				continue
			}
			b = buf[:min(len(buf), p.bytes)]
		}
		if p.slow {
			b = b[:min(len(b), 512)]
			c.sleep(ctx, time.Duration(c.draw.IntN(10))*time.Millisecond)
		}
		_ = conn.SetReadDeadline(time.Now().Add(pollEvery))
		n, err := conn.Read(b)
		if p.bytes > 0 {
			p.bytes -= n
		}
		if bad := s.feed(b[:n], each); bad != nil {
			return bad
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			if !errors.Is(err, io.EOF) {
				c.run.count("streams reset", 1)
			}
			return nil
		}
		if p.after > 0 && time.Since(began) > p.after {
			return nil
		}
		if c.run.end.Load() != nil && p.kind != "steady" {
			return nil // no more of it
		}
	}
	return nil
}

// stalled reads nothing for longer than the gateway stands; it reports whether
// the client reads on then, to see how it ended.
func (c *client) stalled(ctx context.Context) bool {
	c.sleep(ctx, stallMax+time.Duration(c.draw.IntN(2000))*time.Millisecond)
	return c.draw.IntN(2) == 0
}

// sleep waits, but not beyond the run's end.
func (c *client) sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.run.ending:
	}
}

// take judges a block.
func (c *client) take(e event) error {
	if len(e.id) == 0 {
		switch {
		case string(e.name) == "live" && c.placed:
			c.run.count("told that they are live", 1)
		case len(e.data) > 0:
			return errors.New("an event without an id")
		case e.ended && !c.placed:
			return errors.New("a browser forgets its id here, since the stream has not told one yet")
		}
		return nil // heartbeat, the first block while Kafka is away, or the last one
	}
	first := !c.placed
	c.placed = true
	at, err := c.run.parseID(e.id, c.kind.topics)
	if err != nil {
		return err
	}
	if e.id[1] == '2' {
		c.packed++
	}
	pos, anew := at.next, c.anew(at.tags)
	defer func() { c.id, c.tags = string(e.id), at.tags; c.at.Store(c.pos[0]) }()
	switch {
	case c.begun && string(e.name) == "resync":
		return c.resync(e.data, pos, anew)
	case len(anew) > 0:
		return fmt.Errorf("topics %v are others now, without a word", anew)
	case !c.begun:
		c.begun, c.start, c.pos = true, pos, pos
		if len(e.data) > 0 {
			return errors.New("the first id came with an event")
		}
		return nil
	case first:
		for l := range pos {
			if c.pos[l] == unknown { // it got nothing of it, and is given a start now
				c.start[l], c.pos[l] = pos[l], pos[l]
			}
		}
		if c.moved = pos != c.pos; c.moved {
			c.before, c.pos = c.pos, pos
		}
		return nil
	case c.moved:
		return fmt.Errorf("the stream went on elsewhere without a word; the client was at %v", c.before)
	case len(e.data) > 0:
		err = c.record(e, pos)
	}
	if err != nil {
		return err
	}
	return c.advance(pos)
}

// anew returns the topics whose tags are those of others than the client's.
func (c *client) anew(tags [topicsMax]tag) (anew []int) {
	for _, t := range c.kind.topics {
		if was, is := c.tags[t], tags[t]; !was.missing() && !is.missing() && was != is {
			anew = append(anew, t)
		}
	}
	return anew
}

// advance moves the client to pos, which may pass over what holds no records,
// and never goes back.
func (c *client) advance(pos vector) error {
	for l := range pos {
		switch {
		case c.pos[l] == unknown && pos[l] != unknown && len(c.got[l]) == 0:
			c.start[l] = pos[l]
		case pos[l] < max(c.due(l), c.pos[l]):
			return fmt.Errorf("%s went back from %d to %d", c.run.lane(l), c.pos[l], pos[l])
		}
	}
	c.pos = pos
	return nil
}

// due is the first offset that the client has not seen for certain: behind its
// last record, its start, or where a resync event took it.
func (c *client) due(l int) int64 {
	due := c.start[l]
	if n := len(c.jumps[l]); n > 0 {
		j := c.jumps[l][n-1]
		if due = j.to; j.at == len(c.got[l]) {
			return due
		}
	}
	if n := len(c.got[l]); n > 0 {
		due = max(due, int64(c.got[l][n-1].offset)+1)
	}
	return due
}

// record notes a record and moves the client behind it.
func (c *client) record(e event, pos vector) error {
	l, g, err := c.run.envelope(e)
	if err != nil {
		return err
	}
	offset := int64(g.offset)
	switch {
	case !c.kind.has(l):
		return fmt.Errorf("a record of %s, which the route does not serve", c.run.lane(l))
	case offset < c.due(l):
		return fmt.Errorf("record %d of %s came again, the client is at %d", offset, c.run.lane(l), c.pos[l])
	case pos[l] != offset+1:
		return fmt.Errorf("the id of record %d of %s is at %d", offset, c.run.lane(l), pos[l])
	case c.pos[l] == unknown:
		c.start[l] = offset
	}
	c.got[l] = append(c.got[l], g)
	c.pos[l] = pos[l]
	c.records.Add(1)
	return nil
}

// resync notes that the stream goes on elsewhere.
func (c *client) resync(data []byte, pos vector, anew []int) error {
	var n notice
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	r := told{reason: n.Reason, before: c.pos, after: pos, anew: anew}
	if c.moved {
		r.before, c.moved = c.before, false
	}
	for name, list := range n.Topics {
		t := c.run.topic([]byte(name))
		if t < 0 || !slices.Contains(c.kind.topics, t) {
			return fmt.Errorf("topic %q is not of the route", name)
		}
		for _, l := range list {
			if l.Partition < 0 || l.Partition >= partsMax {
				return fmt.Errorf("there is no partition %d", l.Partition)
			}
			r.lost = append(r.lost, lost{laneOf(t, l.Partition), l.From, l.To})
		}
	}
	c.run.count("resync "+n.Reason, 1)
	c.reasons = append(c.reasons, n.Reason)
	c.resyncs.Add(1)
	if c.kind.state {
		return c.restart(n.Reason, pos)
	}
	if err := c.run.o.judge(r); err != nil {
		return err
	}
	for _, l := range r.lost {
		if err := c.lose(n.Reason, l, pos[l.lane]); err != nil {
			return fmt.Errorf("%w: %v", err, r)
		}
	}
	for l := range pos {
		if slices.Contains(anew, topicOf(l)) {
			c.jumps[l] = append(c.jumps[l], jump{len(c.got[l]), 0, pos[l], n.Reason})
			c.pos[l] = pos[l]
		}
	}
	return c.advance(pos)
}

// restart does what a page does that shows state: it forgets what it has when
// the snapshot begins again. Compaction may take a record before anybody has
// read it, and kfake then moves the beginning of the log, which is retention.
func (c *client) restart(reason string, pos vector) error {
	if reason != "expired" {
		return fmt.Errorf("resync %s of a snapshot", reason)
	}
	for l := range pos {
		if pos[l] < c.pos[l] {
			c.forget()
			break
		}
	}
	c.start, c.pos = pos, pos
	return nil
}

// forget drops everything the client has got.
func (c *client) forget() {
	for l := range c.got {
		c.forgotten += len(c.got[l])
		c.got[l] = nil
	}
}

// lose notes what a resync event says of a lane, where the stream goes on at
// next.
func (c *client) lose(reason string, l lost, next int64) error {
	due := c.due(l.lane)
	switch {
	case reason == "expired" && (l.from < due || l.to+1 != next):
		return fmt.Errorf("%+v has expired, the client's next was %d, and it goes on at %d", l, due, next)
	case reason == "truncated" && (l.from > due || l.to+1 < due || l.from > next):
		return fmt.Errorf("%+v was cut, the client's next was %d, and it goes on at %d", l, due, next)
	}
	c.jumps[l.lane] = append(c.jumps[l.lane], jump{len(c.got[l.lane]), l.from, next, reason})
	c.pos[l.lane] = next
	return nil
}

// envelope reads an event's data: where its record is, and the sum of it.
func (r *run) envelope(e event) (lane int, g got, err error) {
	rest := e.data
	field := func(before, after string) (value []byte) {
		if err != nil {
			return nil
		}
		var ok bool
		if rest, ok = bytes.CutPrefix(rest, []byte(before)); !ok {
			err = fmt.Errorf("no %q where it should be", before)
			return nil
		}
		value, rest, ok = bytes.Cut(rest, []byte(after))
		if !ok {
			err = fmt.Errorf("no %q where it should be", after)
		}
		return value
	}
	name := field(`{"topic":"`, `","partition":`)
	t := r.topic(name)
	if err == nil && t < 0 {
		return 0, g, fmt.Errorf("a record of topic %q", name)
	}
	p, perr := number(field("", `,"offset":`))
	o, oerr := number(field("", `,"`))
	if err = errors.Join(err, perr, oerr); err != nil || p >= partsMax || o >= math.MaxUint32 {
		return 0, g, fmt.Errorf("no envelope: %w", err)
	}
	g.offset = uint32(o)
	switch string(e.name) {
	case "":
		field(`timestamp":`, `,"key":"`)
		key := field("", `","headers":[],"value":"`)
		g.key, g.sum = keySum(key), sum(key, field("", `"}`))
	case "delete":
		field(`timestamp":`, `,"key":"`)
		key := field("", `","headers":[],"value":null}`)
		g.key, g.sum, g.gone = keySum(key), sum(key, nil), true
	case "skipped":
		field(`size":`, `}`)
		g.sum = skipped
	default:
		err = fmt.Errorf("event %q", e.name)
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%.40q behind the envelope", rest)
	}
	return laneOf(t, int32(p)), g, err
}
