package kafkatail

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
)

func wantLoss(t testing.TB, rec *recorder, want ...loss) {
	t.Helper()
	got := rec.lost()
	same := slices.EqualFunc(got, want, func(a, b loss) bool {
		return a.reason == b.reason && slices.Equal(a.ranges, b.ranges) && slices.Equal(a.parts, b.parts)
	})
	if !same {
		t.Errorf("lost %+v, want %+v", got, want)
	}
}

// Retention overtakes the tail: what is gone is said, what is left is read
// (cases C01, C06).
func TestDeleteRecordsOvertakes(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 1, 3)
	wantOffsets(t, rec, 1, upTo(0, 3))
	hold := c.Fault(kfake.Fault{Keys: fetches, Partitions: []int32{1}, Err: kerr.KafkaStorageError, Count: -1})
	produce(t, cl, "a", 1, 9)
	if err := c.DeleteRecords("a", 1, 10); err != nil {
		t.Fatal(err)
	}
	hold.Remove()
	wantOffsets(t, rec, 1, append(upTo(0, 3), 10, 11))
	wantLoss(t, rec, loss{frame.Expired, []frame.Range{{Topic: "a", Partition: 1, From: 3, To: 9}}, []frame.Partition{{ID: 1, Next: 10}}})
	produce(t, cl, "a", 0, 2)
	produce(t, cl, "a", 1, 1)
	wantOffsets(t, rec, 0, upTo(0, 2))
	wantOffsets(t, rec, 1, append(upTo(0, 3), 10, 11, 12))
	// Without the pause the library repeats the fetch thousands of times.
	if n := tail.errorCount(kindOutOfRange); n == 0 || n > 10 {
		t.Errorf("%d out of range errors were seen", n)
	}
	if n := tail.Status().Counters.Resyncs["expired"]; n != 1 {
		t.Errorf("%d losses counted", n)
	}
}

// shorten makes brokers say that the only partition of a ends at end.
func shorten(c *cluster, end int64) (undo func()) {
	on := true
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !on {
			c.DropControl()
			return nil, nil, false
		}
		req := kreq.(*kmsg.ListOffsetsRequest)
		if req.Topics[0].Partitions[0].Timestamp != atEnd {
			return endOf(req, 0), nil, true
		}
		return endOf(req, end), nil, true
	})
	return func() { on = false }
}

// endOf answers that the only partition of a is at offset.
func endOf(req *kmsg.ListOffsetsRequest, offset int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	t := kmsg.NewListOffsetsResponseTopic()
	t.Topic = "a"
	p := kmsg.NewListOffsetsResponseTopicPartition()
	p.Offset = offset
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp
}

// The log ends before the position and brokers refuse it (case C08): reading
// goes on at the end.
func TestTruncatedOutOfRange(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), confirmNever)
	rec := tail.follow(t, "a")
	produce(t, c.client(), "a", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	shorten(c, 7)
	f := c.Fault(kfake.Fault{Keys: fetches, Err: kerr.OffsetOutOfRange})
	if err := f.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, rec, 0, upTo(0, 10)) // 7 to 9 once more: kfake has them still
	eventually(t, "the truncation", func() (bool, any) { return len(rec.lost()) > 0, "no loss" })
	wantLoss(t, rec, loss{frame.Truncated, []frame.Range{{Topic: "a", Partition: 0, From: 7, To: 9}}, []frame.Partition{{ID: 0, Next: 7}}})
}

// The log ends before the position and nobody says so: fetches wait, and would
// go on silently once the log has grown past the position. The listed end
// tells, if it stays so for a while.
func TestTruncatedInSilence(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	produce(t, c.client(), "a", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	shorten(c, 6)
	eventually(t, "the truncation", func() (bool, any) { return len(rec.lost()) > 0, "no loss" })
	wantLoss(t, rec, loss{frame.Truncated, []frame.Range{{Topic: "a", Partition: 0, From: 6, To: 9}}, []frame.Partition{{ID: 0, Next: 6}}})
	wantOffsets(t, rec, 0, upTo(0, 10))
	if n := tail.Status().Counters.Resyncs["truncated"]; n != 1 {
		t.Errorf("%d truncations counted", n)
	}
}

// A broker that is behind for less than the time to confirm truncates nothing
// (case C05).
func TestShorterForAMoment(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), confirmNever)
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	undo := shorten(c, 6)
	eventually(t, "the short end to be seen", func() (bool, any) {
		return tail.topicStatus("a").Partitions[0].End == 6, ""
	})
	undo()
	eventually(t, "the end to be back", func() (bool, any) {
		return tail.topicStatus("a").Partitions[0].End == 10, ""
	})
	produce(t, cl, "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 12))
	wantLoss(t, rec)
}

// An end that was listed before the tail got past it says nothing when a fetch
// is refused behind it: only a later listing does.
func TestListedBeforeThePosition(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), confirmNever, func(c *Config) { c.Timing.Request = patience })
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	asked, answer := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) }) // the tail may ask anew while the first answer is held back
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.ListOffsetsRequest)
		if req.Topics[0].Partitions[0].Timestamp != atEnd {
			c.KeepControl()
			return nil, nil, false
		}
		ask()
		c.SleepControl(func() { <-answer })
		return endOf(req, 10), nil, true
	})
	<-asked
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 13))
	f := c.Fault(kfake.Fault{Keys: fetches, Err: kerr.OffsetOutOfRange})
	if err := f.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal to be seen", func() (bool, any) { return tail.errorCount(kindOutOfRange) > 0, "" })
	close(answer)
	produce(t, cl, "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 15))
	wantLoss(t, rec)
}

// Leader epochs show where the log was cut (KIP-320): reading goes back there
// (case C08, a connected client).
func TestDataLoss(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), confirmNever)
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = "a"
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.EndOffset, p.LeaderEpoch = 6, 0
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp, nil, true
	})
	if err := c.MoveTopicPartition("a", 0, (c.LeaderFor("a", 0)+1)%2); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "a", 0, 2)
	eventually(t, "the data loss", func() (bool, any) { return len(rec.lost()) > 0, "no loss" })
	wantOffsets(t, rec, 0, upTo(0, 12))
	wantLoss(t, rec, loss{frame.Truncated, []frame.Range{{Topic: "a", Partition: 0, From: 6, To: 9}}, []frame.Partition{{ID: 0, Next: 6}}})
}

func confirmNever(c *Config) { c.Timing.Confirm = patience * 2 }

// A batch that would decompress without bounds is skipped, and said; what is
// before and behind it is read.
func TestBatchTooLarge(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.decompressBytesMax = 64 << 10 })
	rec := tail.follow(t, "a")
	cl := c.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	send(t, cl, &kgo.Record{Topic: "a", Value: []byte("before")})
	zeros := &kgo.Record{Topic: "a", Value: bytes.Repeat([]byte{'0'}, 900<<10)}
	send(t, cl, zeros)
	send(t, cl, &kgo.Record{Topic: "a", Value: []byte("after")})
	wantOffsets(t, rec, 0, []int64{0, 2})
	wantLoss(t, rec, loss{frame.Expired, []frame.Range{{Topic: "a", Partition: 0, From: 1, To: 1}}, []frame.Partition{{ID: 0, Next: 2}}})
	if n := tail.errorCount(kindTooLarge); n != 1 {
		t.Errorf("%d batches too large counted", n)
	}
}

// The library starts at the log start by itself where a partition is not in its
// metadata yet; what it skipped is told from a gap by the log start.
func TestSkippedByTheLibrary(t *testing.T) {
	for _, tc := range []struct {
		name     string
		logStart int64
		offsets  []int64
		want     []int64
		lost     []frame.Range
	}{
		{"contiguous", 0, []int64{5, 6}, []int64{5, 6}, nil},
		{"gap", 5, []int64{7, 9}, []int64{7, 9}, nil},
		{"retention", 8, []int64{8, 9}, []int64{8, 9}, []frame.Range{{Topic: "a", From: 5, To: 7}}},
		{"retention and gap", 8, []int64{11}, []int64{11}, []frame.Range{{Topic: "a", From: 5, To: 7}}},
		{"log start moved behind the fetch", 9, []int64{5, 6}, []int64{5, 6}, nil},
		{"read again", 0, []int64{3, 4, 5}, []int64{5}, nil},
		{"all read again", 0, []int64{3, 4}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, ft, _ := fixture(t, nil, len(tc.offsets))
			rec, tp := newRecorder(t), r.t.topics["a"]
			tp.parts[0].next = 5
			tp.subs = []subscription{{sink: rec}}
			tp.announce()
			fp := &ft.Partitions[0]
			fp.LogStartOffset = tc.logStart
			for i, o := range tc.offsets {
				fp.Records[i].Offset = o
			}
			r.records(ft, fp)
			r.flush()
			if got := rec.offsets(0); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			var lost []frame.Range
			for _, l := range rec.lost() {
				lost = append(lost, l.ranges...)
			}
			if !slices.Equal(lost, tc.lost) {
				t.Errorf("lost %v, want %v", lost, tc.lost)
			}
		})
	}
}

// TestRecordsOfTheLogThatWasCut: what was polled together with the news that the
// log was cut is of the log before, wherever it stands among the fetches; what
// is there now is polled behind it.
func TestRecordsOfTheLogThatWasCut(t *testing.T) {
	r, ft, _ := fixture(t, nil, 2)
	var err error
	if r.cl, err = kgo.NewClient(); err != nil { // to be told where to go on
		t.Fatal(err)
	}
	defer r.cl.Close()
	rec, tp := newRecorder(t), r.t.topics["a"]
	tp.parts[0].next = 5
	tp.subs = []subscription{{sink: rec}}
	tp.announce()
	poll := func(offsets []int64, loss error) kgo.Fetch {
		topic := *ft
		topic.Partitions = []kgo.FetchPartition{{Err: loss}}
		for _, o := range offsets {
			topic.Partitions[0].Records = append(topic.Partitions[0].Records, &kgo.Record{Offset: o})
		}
		return kgo.Fetch{Topics: []kgo.FetchTopic{topic}}
	}
	loss := &kgo.ErrDataLoss{Topic: "a", ConsumedTo: 5, ResetTo: 3}
	r.apply(kgo.Fetches{poll([]int64{5, 6}, nil), poll([]int64{7}, loss), poll([]int64{8}, nil)})
	if got := rec.offsets(0); len(got) > 0 || tp.parts[0].next != 3 {
		t.Errorf("got %v, and is at %d, want nothing and 3", got, tp.parts[0].next)
	}
	r.polls++
	r.apply(kgo.Fetches{poll([]int64{3, 4, 5}, nil)})
	if got := rec.offsets(0); !slices.Equal(got, []int64{3, 4, 5}) {
		t.Errorf("then got %v", got)
	}
	lost := rec.lost()
	if want := (frame.Range{Topic: "a", From: 3, To: 4}); len(lost) != 1 || !slices.Equal(lost[0].ranges, []frame.Range{want}) {
		t.Errorf("lost %v, want %v", lost, want)
	}
}
