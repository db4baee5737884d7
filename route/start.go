package route

import "time"

// StartKind says where a request asks to begin.
type StartKind uint8

// The kinds of Start.
const (
	StartNone    StartKind = iota // it does not say: the route's start policy
	StartForeign                  // what it says can't be read: resync, never a 400
	StartSince                    // N is a time, in milliseconds since 1970
	StartLast                     // N is how many offsets of each partition
)

// Start is where a request asks to begin that has nothing to resume from.
type Start struct {
	Kind StartKind
	N    int64 // at least 0
}

// The query names of Start. since wins over last.
const (
	sinceName = "since"
	lastName  = "last"
)

// StartOf returns where a request asks to begin: since is a time, in RFC 3339
// or in milliseconds since 1970, last a number. Escapes are decoded as
// ResumeID does, and what can't be read is no error for the same reason.
func StartOf(query, scratch []byte) Start {
	for _, name := range [...]string{sinceName, lastName} {
		switch r := queryID(query, name, scratch); r.Kind {
		case ResumeNone:
		case ResumeForeign:
			return Start{Kind: StartForeign}
		case ResumeGiven:
			return readStart(name, r.ID)
		}
	}
	return Start{}
}

func readStart(name string, text []byte) Start {
	if n, ok := readNumber(text); ok {
		if name == lastName {
			return Start{StartLast, n}
		}
		return Start{StartSince, n}
	}
	var at time.Time
	if name == lastName || at.UnmarshalText(text) != nil {
		return Start{Kind: StartForeign}
	}
	return Start{StartSince, max(0, at.UnixMilli())}
}

// numberDigitsMax is how long a number may be: 15 digits of milliseconds are
// the year 33658, and far from the end of 64 bits.
const numberDigitsMax = 15

func readNumber(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > numberDigitsMax {
		return 0, false
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
