package frame

// Reason is why a stream can't go on where it was: the reason field of a
// resync event and a metric label.
type Reason string

// The reasons of a resync event.
const (
	Expired   Reason = "expired"   // retention passed the position
	Truncated Reason = "truncated" // the log was cut: unclean election, data loss, id beyond the end
	Recreated Reason = "recreated" // the topic is another one of the same name
	TooFar    Reason = "too-far"   // more than the replay limits allow
	UnknownID Reason = "unknown"   // a foreign or unparsable id, or one this node can't place
)

// Range is a run of offsets that a stream did not get; both ends inclusive,
// negative when not known (null in the event).
type Range struct {
	Topic     string
	Partition int32
	From, To  int64
}
