package hub

import "tailcast/frame"

// Sink is where a tail puts one topic for one feed. The tail calls it from one
// goroutine at a time. A sink never waits for a browser.
type Sink interface {
	// Open says which incarnation of the topic is tailed and where each
	// partition starts (frame.Unknown while a partition has no leader). Until
	// every topic of a feed is open, its streams wait. A topic that does not
	// exist (yet, or any more) is opened with a zero id and no partitions, and
	// opened again, with its id and from its beginning, once it appears.
	Open(id frame.TopicID, parts []frame.Partition)
	// Warm is an Open that leaves the topic's streams waiting, so that the log
	// holds records before anyone reads it: parts are where that filling starts.
	// Open follows, with the positions reached; a topic that is another one
	// meanwhile is Recreated first.
	Warm(id frame.TopicID, parts []frame.Partition)
	// Append adds consecutive records of one partition, lowest offset first.
	// It borrows recs until it returns.
	Append(partition int32, recs []frame.Record)
	// Advance moves a partition over offsets that hold no record (control
	// records, aborted or compacted ones): next is the next offset to read.
	// It also adds a partition that is new, or one whose start is now known.
	Advance(partition int32, next int64)
	// Lost says that offsets can't be delivered, and why; ranges are
	// inclusive. Positions have moved to parts: forward when expired, back
	// when truncated. The streams see one resync event.
	Lost(reason frame.Reason, lost []frame.Range, parts []frame.Partition)
	// Recreated says that the topic is another incarnation now, read from parts.
	Recreated(id frame.TopicID, parts []frame.Partition)
	// Flush makes what was appended visible, for loops that w wakes. A tail calls
	// it of each sink after a poll, and then w.Wake; of a large poll, all but
	// the last segment is flushed already.
	Flush(w *Wakes)
}

// Source is where records come from.
type Source interface {
	// Tail starts to read topic into sink, once per call, until End or until the
	// source is closed. It returns at once; a source that is away calls
	// sink.Open when it is back.
	Tail(topic string, sink Sink)
	// End ends what a Tail of the same sink began. It returns at once; the sink
	// may still be called for a moment.
	End(topic string, sink Sink)
}
