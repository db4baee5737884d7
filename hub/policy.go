package hub

import (
	"time"

	"tailcast/frame"
)

// Policy is where a stream begins that has no position. The zero Policy is the
// end of every partition.
type Policy struct {
	From From
	N    int64 // FromTime: milliseconds since 1970; FromAgo: milliseconds before now; FromLast: offsets
}

// From is a kind of Policy.
type From uint8

// The kinds of Policy.
const (
	FromLatest   From = iota // the end of each partition
	FromEarliest             // what the brokers still hold
	FromTime                 // the first record of each partition whose time is not before N
	FromAgo                  // the same, N before the stream begins, to the second
	FromSnapshot             // the latest record of each key, and then what follows; the feed's Spec has Keys
	FromLast                 // N offsets before the end of each partition, some of which may hold no record
)

// since returns the time from which records are wanted, in milliseconds since
// 1970; false unless p goes by time. Streams of the same second share an answer.
func (p Policy) since(now time.Time) (millis int64, ok bool) {
	switch p.From { //nolint:exhaustive // the others do not go by time
	case FromTime:
		return max(0, p.N), true
	case FromAgo:
		return max(0, (now.UnixMilli()-p.N)/1000*1000), true
	}
	return 0, false
}

// first returns where p has a stream begin in a partition, or frame.Unknown
// when the brokers have to be asked or the partition is not known yet. mu must
// be held.
func (f *Feed) first(p Policy, i int) int64 {
	part, base := &f.parts[i], f.index.parts[i].base
	switch {
	case part.next == frame.Unknown:
	case p.From == FromLatest:
		return part.next
	case p.From == FromSnapshot, p.From == FromEarliest && base == 0:
		return 0
	case p.From == FromLast && (base == 0 || part.next-p.N >= base):
		return max(0, part.next-p.N)
	}
	return frame.Unknown
}

// begin returns where a stream begins by p: frame.Unknown in the partitions of
// which first does not say. It is the feed's scratch. mu must be held.
func (f *Feed) begin(p Policy) frame.Position {
	if p.From == FromLatest {
		f.want = append(f.want[:0], f.ids.Position()...)
		return f.want
	}
	f.want = f.position()
	for g := range f.want {
		parts := f.want[g].Parts
		for k := range parts {
			parts[k].Next = f.first(p, f.part(g, parts[k].ID))
		}
	}
	return f.want
}

// toAsk returns the first topic of which the brokers have to say where pos goes
// on: this node knows a partition of which pos does not say. mu must be held.
func (f *Feed) toAsk(pos frame.Position) (group int, ok bool) {
	for g := range pos {
		for _, p := range pos[g].Parts {
			if p.Next != frame.Unknown {
				continue
			}
			if i := f.part(g, p.ID); i >= 0 && f.parts[i].next != frame.Unknown {
				return g, true
			}
		}
	}
	return 0, false
}
