package kafkatail

import "time"

// Limits. Each says what it protects and where the number comes from.
const (
	// batchRecordsMax bounds the records given to a sink in one Append, and
	// so the time a feed's lock is held: about 50 us at 200 ns a record.
	batchRecordsMax = 256
	// fetchBytesMax and partitionBytesMax bound what one fetch asks of a
	// broker. Memory is about brokers x fetchBytesMax x compression ratio;
	// the library's 50 MiB is for batch jobs.
	fetchBytesMax     = 16 << 20
	partitionBytesMax = 1 << 20
	// responseBytesMax is the longest answer read from a broker. A batch
	// above the fetch limits comes whole (KIP-74), so this bounds the batch.
	responseBytesMax = 64 << 20
	// decompressBytesMax bounds one batch after decompression: a small batch
	// of zeros must not become gigabytes. Such a batch is skipped.
	decompressBytesMax = 64 << 20
	// historyBytesMax is what one read of history asks for: 5,000 records of
	// 200 B, a round trip in a few ms, so that who waits for the next one does
	// not wait long.
	historyBytesMax = 1 << 20
	// toldBytesMax ends a read of history at the first batch boundary behind
	// so many bytes after decompression: who is told them keeps them. Up to a
	// ratio of 8 it cuts nothing.
	toldBytesMax = 8 << 20
	// historyFetchesMax bounds the fetches of history under way, and so their
	// memory: 32 x historyBytesMax and a decompressed batch each.
	historyFetchesMax = 32
	// triesMax is how often a read of history is tried. That covers a leader
	// that moves in order; a dead one takes seconds to be replaced, and
	// meanwhile others may use the caller's turn.
	triesMax = 4
	// metaAgeMax is how long a read of history trusts leaders and topic ids.
	// Brokers refuse what is out of date, but those without topic ids in
	// fetches (before 3.1), which read another topic of the name till then.
	metaAgeMax = 30 * time.Second
	// boundsAgeMax is what hub.History promises.
	boundsAgeMax = time.Second
	// answersMax is how many topics' answers are kept, some KB each.
	answersMax = 1024
	// holeForget is how long after it was seen a hole in the log is a new one:
	// readers of history that find nothing ask again within 5 s.
	holeForget = 15 * time.Second
	// remoteWait is how long a broker may look for a record in remote storage.
	remoteWait = 500 * time.Millisecond
	// passwordBytesMax refuses a file that is no password.
	passwordBytesMax = 64 << 10
	// firstPause and longestPause bound how long a partition that answers with
	// errors is left alone; without it the library asks again at once,
	// thousands of times a second.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// gapFreePartitions are fetched without a pause; each one more adds
	// fetchGapEach between two fetches, up to fetchGapMax, which people do not
	// notice. A fetch takes some 2 us of a CPU a partition, so that fetches stay
	// below a twentieth of one; without a pause, 128 partitions with a record a
	// second each take as much (ADR 8).
	gapFreePartitions = 128
	fetchGapEach      = 90 * time.Microsecond
	fetchGapMax       = 150 * time.Millisecond
	// errorsForget is the silence after which a partition's errors start to
	// count from zero. A fetch without records is not shown to us, so success
	// on an idle partition can't be seen.
	errorsForget = 10 * time.Second
	// lookGap bounds how often being woken makes the keeper look.
	lookGap = 100 * time.Millisecond
	// unsettledMax bounds how long the keeper looks often because of something
	// that may never settle.
	unsettledMax = time.Minute
	// headersKeptMax bounds the header scratch that a reader keeps between
	// batches: 40 bytes each.
	headersKeptMax = 16 << 10
	// openGrace is how long a topic's first opening waits for the offsets of
	// partitions that have a leader; the rest is opened as unknown.
	openGrace = 2 * time.Second
	// othersMax is how many brokers have to agree that a topic does not exist
	// which nobody has seen yet, one of them maybe asked twice; othersWait
	// bounds the wait for them.
	othersMax  = 3
	othersWait = 2 * time.Second
	// probesMax bounds the partitions one look probes.
	probesMax = 4
	// loggedTopicsMax is how many topics a tail may have and log each that is
	// well; beyond it there are requests that name them, and logs have no room.
	loggedTopicsMax = 200
	// retiredMax is how many former ids of a topic are remembered, so that a
	// broker that lags behind can't bring one back.
	retiredMax = 8
	// reportPartitionsMax bounds one commit. The broker writes it as one batch of
	// its offsets topic, 1 MiB at most, and a position with the longest names
	// there can be takes some 600 bytes.
	reportPartitionsMax = 1000
	// reportFailedMax is how long the reporter waits after commits that failed
	// again and again, reportLogGap the time between two lines about it.
	reportFailedMax = time.Minute
	reportLogGap    = 10 * time.Minute
	// reportWhole is the time after which positions that did not move are
	// committed again: brokers forget what is older than
	// offsets.retention.minutes, a week, or a day before Kafka 2.0.
	reportWhole = 12 * time.Hour
	// reportLastMax is how long Run waits for the last commit.
	reportLastMax = 2 * time.Second
	// closeMax is how long Run waits for a client to close.
	closeMax = 5 * time.Second
)
