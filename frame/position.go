package frame

// Unknown is the Next of a partition that exists but whose position was not
// known when the id was made (written `p-*`).
const Unknown int64 = -1

// Partition is a stream's place in one partition.
type Partition struct {
	ID   int32
	Next int64 // the next offset to deliver, or Unknown; on the wire it is the one before
}

// TopicID is the identity of one incarnation of a topic: Kafka's topic id
// (KIP-516), or 16 bytes derived from cluster id and name where brokers have
// none. Zero means not known (the topic does not exist yet).
type TopicID [16]byte

// Tag marks whose offsets a group of an id holds: two base64url characters of
// a hash of the topic's name, three of its TopicID. A zero byte means that
// part is absent; ID is never there without Name.
type Tag struct {
	Name [2]byte
	ID   [3]byte
}

// Group is a stream's place in one topic.
type Group struct {
	Tag   Tag
	Parts []Partition // strictly ascending by ID; a partition whose Next is 0 is left out

	// Rest says that a partition which is not in Parts is Unknown and not at
	// 0: only ids of other gateways mean that, and none of ours is made of one.
	Rest bool
}

// Position is a stream's place in every topic of its feed, in the feed's order.
type Position []Group

// Clone returns a copy that shares no memory with p.
func (p Position) Clone() Position {
	if p == nil {
		return nil
	}
	n := 0
	for i := range p {
		n += len(p[i].Parts)
	}
	all := make([]Partition, 0, n)
	c := make(Position, len(p))
	for i := range p {
		from := len(all)
		all = append(all, p[i].Parts...)
		c[i] = Group{Tag: p[i].Tag, Parts: all[from:len(all):len(all)], Rest: p[i].Rest}
	}
	return c
}
