package admin

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// The status document. Fields are added, never renamed or removed: people
// write scripts against it, and the dashboard reads it. Nothing in it comes
// from a request.
type (
	status struct {
		Version       string    `json:"version"`
		GoVersion     string    `json:"go_version"`
		Started       time.Time `json:"started"`
		UptimeSeconds float64   `json:"uptime_seconds"`
		Ready         bool      `json:"ready"`
		NotReady      []string  `json:"not_ready"` // reasons; empty when ready

		Connections    int    `json:"connections"`
		Streams        int    `json:"streams"`
		StreamsLagging int    `json:"streams_lagging"`
		EventsSent     uint64 `json:"events_sent"`
		BytesSent      uint64 `json:"bytes_sent"`

		Accepted    uint64 `json:"connections_accepted"`
		Rejected    Counts `json:"connections_rejected"`
		Closed      Counts `json:"connections_closed"`
		SlowDropped Counts `json:"slow_clients_dropped"`
		Resyncs     Counts `json:"resyncs"`
		Replays     Counts `json:"replays"`
		Shed        Counts `json:"streams_shed"`
		Responses   Counts `json:"http_responses"`

		FeedsRefused    uint64 `json:"feeds_refused"`
		RecordsSkipped  uint64 `json:"records_skipped"`
		RecordsDropped  uint64 `json:"records_dropped"`
		RecordsReplaced uint64 `json:"records_replaced"`
		NamesRefused    uint64 `json:"event_names_refused"`

		Loops []loopStatus `json:"loops"`
		Feeds []feedStatus `json:"feeds"`
		Kafka kafkaStatus  `json:"kafka"`
	}

	loopStatus struct {
		Loop             int     `json:"loop"`
		Connections      int     `json:"connections"`
		Streams          int     `json:"streams"`
		Lagging          int     `json:"streams_lagging"`
		Turns            uint64  `json:"turns"`
		SinceTurnSeconds float64 `json:"since_turn_seconds"`
		EventsSent       uint64  `json:"events_sent"`
		BytesSent        uint64  `json:"bytes_sent"`
	}

	feedStatus struct {
		Route       string   `json:"route"`
		Topics      []string `json:"topics"`
		Format      string   `json:"format"`
		Subscribers int      `json:"subscribers"`
		Records     uint64   `json:"records"`
		LogBytes    int64    `json:"log_bytes"`
		LogStart    int64    `json:"log_start"`
		LogHead     int64    `json:"log_head"`
		Position    string   `json:"position"`
		Feeds       int      `json:"feeds"` // that this stands for: those of a route with parameters in its topics, together

		Snapshot *SnapshotStats `json:"snapshot,omitempty"`
	}

	kafkaStatus struct {
		Connected bool          `json:"connected"`
		Error     string        `json:"error,omitempty"`
		Topics    []topicStatus `json:"topics"`
		Others    otherStatus   `json:"other_topics"`
	}

	otherStatus struct { // topics that only requests name
		Topics  int    `json:"topics"`
		Records uint64 `json:"records"`
		Lag     int64  `json:"lag"`
	}

	topicStatus struct {
		Topic      string            `json:"topic"`
		Open       bool              `json:"open"`
		Error      string            `json:"error,omitempty"`
		Records    uint64            `json:"records"`
		Lag        int64             `json:"lag"` // of the partitions where it is known
		Partitions []partitionStatus `json:"partitions"`
	}

	partitionStatus struct {
		Partition int32  `json:"partition"`
		Next      *int64 `json:"next"` // null when not known, as the two below
		End       *int64 `json:"end"`
		Lag       *int64 `json:"lag"`
	}
)

func newStatus(snap Snapshot, notReady error, version string, started, now time.Time) status {
	t := sum(snap.Loops)
	s := status{
		Version:       version,
		GoVersion:     runtime.Version(),
		Started:       started.UTC().Truncate(time.Millisecond),
		UptimeSeconds: seconds(now.Sub(started)),
		Ready:         notReady == nil,
		NotReady:      []string{},

		Connections:    t.connections,
		Streams:        t.streams,
		StreamsLagging: t.lagging,
		EventsSent:     t.events,
		BytesSent:      t.bytes,

		Accepted:    snap.Accept.Accepted,
		Rejected:    snap.Accept.Rejected.seed(),
		Closed:      t.closed,
		SlowDropped: t.slow.seed(slowReasons...),
		Resyncs:     snap.Hub.Resyncs.seed(resyncReasons...),
		Replays:     snap.Hub.Replays.seed(replaySources...),
		Shed:        t.shed,
		Responses:   t.responses,

		FeedsRefused:    snap.Hub.FeedsRefused,
		RecordsSkipped:  snap.Hub.Skipped,
		RecordsDropped:  snap.Hub.Dropped,
		RecordsReplaced: snap.Hub.Replaced,
		NamesRefused:    snap.Hub.NamesRefused,

		Loops: make([]loopStatus, 0, len(snap.Loops)),
		Feeds: make([]feedStatus, 0, len(snap.Hub.Feeds)),
		Kafka: kafkaStatus{
			Connected: snap.Kafka.Connected,
			Error:     snap.Kafka.Error,
			Topics:    make([]topicStatus, 0, len(snap.Kafka.Topics)),
			Others:    otherStatus(snap.Kafka.Others),
		},
	}
	if notReady != nil {
		s.NotReady = strings.Split(notReady.Error(), "\n")
	}
	for i, l := range snap.Loops {
		s.Loops = append(s.Loops, loopStatus{
			i, l.Connections, l.Streams, l.Lagging, l.Turns, seconds(l.SinceTurn), l.EventsSent, l.BytesSent,
		})
	}
	for _, f := range snap.Hub.Feeds {
		s.Feeds = append(s.Feeds, feedStatus(f))
	}
	for _, topic := range snap.Kafka.Topics {
		s.Kafka.Topics = append(s.Kafka.Topics, newTopicStatus(topic))
	}
	return s
}

func newTopicStatus(t TopicStats) topicStatus {
	s := topicStatus{
		Topic: t.Topic, Open: t.Open, Error: t.Error, Records: t.Records,
		Partitions: make([]partitionStatus, 0, len(t.Partitions)),
	}
	for _, p := range t.Partitions {
		ps := partitionStatus{Partition: p.ID, Next: known(p.Next), End: known(p.End)}
		if lag, ok := p.Lag(); ok {
			ps.Lag = &lag
			s.Lag += lag
		}
		s.Partitions = append(s.Partitions, ps)
	}
	return s
}

// known is nil for an offset that is not.
func known(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// seconds is d to the millisecond, which is as much as a person reads.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func serveStatus(w http.ResponseWriter, s status) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(s) // its own types can't fail to encode; a reader that is gone is no news
}
