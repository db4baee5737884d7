package bench

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// deletesOne is of how many changes one deletes its key.
	deletesOne = 5
	// hotShare is of how many keys one gets half of the changes, so that keys
	// change several times, and some come back that were deleted.
	hotShare = 100
)

// Changes are the records of a compacted topic, the same ones whoever counts
// them: one for each key, and behind those changes without an end. Who
// publishes them and who looks at what came of them need to agree on nothing but
// how many there were. They belong to one goroutine.
type Changes struct {
	Keys       int64 // at least 1
	Partitions int   // at least 1

	n     int64
	rng   *rand.Rand
	state []keyState // by key, from 1
}

// Next is the next record, due at the given time. Its user is the number of its
// key, from 1, and it is in partition User % Partitions. One that is deleted has
// no value.
func (c *Changes) Next(due time.Time) (p Payload, deleted bool) {
	if c.state == nil {
		c.state = make([]keyState, c.Keys+1)
		c.rng = rand.New(rand.NewPCG(1, 2))
	}
	key := 1 + c.n
	if c.n >= c.Keys {
		of := c.Keys
		if c.rng.IntN(2) == 0 {
			of = max(1, c.Keys/hotShare)
		}
		key, deleted = 1+c.rng.Int64N(of), c.rng.IntN(deletesOne) == 0
	}
	c.n++
	s := &c.state[key]
	p = Payload{Partition: int32(key % int64(c.Partitions)), Seq: s.next(), Time: due.UnixNano(), User: key}
	if *s = s.put(p.Seq); deleted {
		*s |= keyGone
	}
	return p, deleted
}

// Skip takes the next n records.
func (c *Changes) Skip(n int64) {
	for range n {
		c.Next(time.Time{})
	}
}

// keyState is what is known of one key: how many records it has had at least,
// so which number the next one may have, and whether the last one deleted it. The
// zero value is a key of which nothing is known, and which is not there.
type keyState uint32

const (
	keyGone keyState = 1 << 31
	// keySeqMax bounds the records of a key that can be told apart.
	keySeqMax = 1<<31 - 2
)

// KeyStatesMax bounds the keys of all streams of a client, at 4 bytes each:
// 1 GiB.
const KeyStatesMax = 1 << 28

func (s keyState) next() int64 { return int64(s &^ keyGone) }

// has reports whether the key is there.
func (s keyState) has() bool { return s&keyGone == 0 && s != 0 }

func (s keyState) String() string {
	switch {
	case s == 0:
		return "nothing"
	case s&keyGone != 0:
		return "a deletion"
	}
	return fmt.Sprint("record ", s.next()-1)
}

// put is s behind record seq of the key. REQUIRES: 0 <= seq <= keySeqMax.
func (keyState) put(seq int64) keyState { return keyState(seq + 1) }

// remove is s behind a deletion, which is one record more, at least.
func (s keyState) remove() keyState { return (s + 1) | keyGone }
