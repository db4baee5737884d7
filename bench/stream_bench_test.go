package bench

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkFeed reads frames of 200-byte payloads, as a verifying client does.
func BenchmarkFeed(b *testing.B) {
	for _, partitions := range []int{1, 12, 100} {
		for _, perRead := range []int{1, 32} {
			b.Run(fmt.Sprintf("partitions=%d/events=%d", partitions, perRead), func(b *testing.B) {
				j := &judge{tally: &tally{verify: true, ids: true}}
				s := &stream{out: j}
				if err := s.feed([]byte(testHead)); err != nil {
					b.Fatal(err)
				}
				reads := benchReads(partitions, perRead)
				b.SetBytes(int64(len(reads[0])))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if i%len(reads) == 0 {
						j.marks = j.marks[:0] // the numbers begin again
					}
					if err := s.feed(reads[i%len(reads)]); err != nil {
						b.Fatal(err)
					}
				}
				if n := j.tally.counts.Faults(); n > 0 {
					b.Fatalf("%d faults: %q", n, j.tally.faults[0])
				}
			})
		}
	}
}

// benchReads makes reads of so many events each, round robin over partitions.
func benchReads(partitions, perRead int) [][]byte {
	offsets := make([]int64, partitions)
	for p := range offsets {
		offsets[p] = 1000
	}
	var reads [][]byte
	n := 0
	for range 64 {
		var read strings.Builder
		for range perRead {
			p := n % partitions
			offsets[p]++
			var id strings.Builder
			for i, o := range offsets {
				fmt.Fprintf(&id, ".%d-%d", i, o)
			}
			payload := Payload{Partition: int32(p), Seq: int64(n / partitions), Time: 1790000000000000000}.Append(nil, 200)
			read.WriteString(chunk(fmt.Sprintf("id: v1:%s~ab3f9\ndata: %s\n\n", id.String()[1:], payload)))
			n++
		}
		reads = append(reads, []byte(read.String()))
	}
	return reads
}
