package chaos

import (
	"fmt"
	"strings"
)

// kind is what a client asks for: a route, and which records of the log it is
// to get of it.
type kind struct {
	name   string
	target string         // path and query, without an id
	wants  func(got) bool // nil: every record
	state  bool           // the last record of each key, at the end
}

// users are how many keys records have by default.
const users = 16

func user(i int) string { return fmt.Sprint("user-", i%users) }

// plainly are clients that get everything.
func plainly(int) kind { return kind{name: "plain", target: "/events"} }

// mixed are clients of every kind of route that a topic can have.
func mixed(topic string) func(int) kind {
	return func(n int) kind {
		a, b := user(n), user(n/2+3)
		switch n % 7 {
		case 1:
			return kind{name: "path filter", target: "/users/" + a, wants: ofKeys(a)}
		case 2:
			return kind{name: "query filter", target: "/pick?a=" + a + "&b=" + b, wants: ofKeys(a, b)}
		case 3:
			return kind{name: "topic parameter", target: "/topics/" + topic}
		case 4:
			return kind{name: "from the beginning", target: "/early"}
		case 5:
			return kind{name: "filter from the beginning", target: "/early/" + a, wants: ofKeys(a)}
		}
		return plainly(n)
	}
}

// stateful are clients of a snapshot route.
func stateful(int) kind { return kind{name: "snapshot", target: "/state", state: true} }

// ofKeys wants the records of some keys.
func ofKeys(keys ...string) func(got) bool {
	want := map[uint32]bool{}
	for _, k := range keys {
		want[keySum([]byte(k))] = true
	}
	return func(g got) bool { return want[g.key] }
}

// routes is the gateways' file for a topic.
func routes(topic string, compacted bool) string {
	file := `routes:
  - {path: /events, topic: TOPIC, format: envelope}
  - {path: "/users/{user}", topic: TOPIC, format: envelope, filter: [{key: "{user}"}]}
  - {path: /pick, topic: TOPIC, format: envelope, filter: [{key: "{a}"}, {key: "{b}"}]}
  - {path: "/topics/{topic}", topic: "{topic}", allow: [TOPIC], format: envelope}
  - {path: /early, topic: TOPIC, format: envelope, start: earliest}
  - {path: "/early/{user}", topic: TOPIC, format: envelope, start: earliest, filter: [{key: "{user}"}]}
`
	if compacted {
		file += "  - {path: /state, topic: TOPIC, format: envelope, start: snapshot}\n"
	}
	return strings.ReplaceAll(file, "TOPIC", topic)
}
