package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// kind is what a client asks for: a route, and which records of which topics
// it is to get of it.
type kind struct {
	name   string
	target string         // path and query, without an id
	topics []int          // of the run's, in the order of the route
	wants  func(got) bool // nil: every record
	state  bool           // the last record of each key, at the end
}

// has reports whether a lane is of the kind's topics.
func (k kind) has(lane int) bool { return slices.Contains(k.topics, topicOf(lane)) }

// users are how many keys records have by default.
const users = 16

func user(i int) string { return fmt.Sprint("user-", i%users) }

// plainly are clients that get everything.
func plainly(int) kind { return kind{name: "plain", target: "/events", topics: []int{0}} }

// mixed are clients of every kind of route that a topic can have.
func mixed(topic string) func(int) kind {
	only := []int{0}
	return func(n int) kind {
		a, b := user(n), user(n/2+3)
		switch n % 7 {
		case 1:
			return kind{name: "path filter", target: "/users/" + a, topics: only, wants: ofKeys(a)}
		case 2:
			return kind{name: "query filter", target: "/pick?a=" + a + "&b=" + b, topics: only, wants: ofKeys(a, b)}
		case 3:
			return kind{name: "topic parameter", target: "/topics/" + topic, topics: only}
		case 4:
			return kind{name: "from the beginning", target: "/early", topics: only}
		case 5:
			return kind{name: "filter from the beginning", target: "/early/" + a, topics: only, wants: ofKeys(a)}
		}
		return plainly(n)
	}
}

// stateful are clients of a snapshot route.
func stateful(int) kind {
	return kind{name: "snapshot", target: "/state", topics: []int{0}, state: true}
}

// What routes of several topics serve, of the run's: all of them in an order
// of their own, or two.
var (
	allTopics = []int{2, 0, 1}
	twoTopics = []int{1, 2}
)

// several are clients of every kind of route that several topics can have.
func several(n int) kind {
	a := user(n)
	switch n % 9 {
	case 7:
		return kind{name: "topic parameter beside a topic", target: "/beside/a", topics: []int{1, 0}}
	case 8:
		return kind{name: "topic parameter and filter", target: "/beside/c/" + a, topics: []int{1, 2}, wants: ofKeys(a)}
	}
	return severalByName(n)
}

// severalByName are those of several whose topics are named by the routes: they
// may come while one of them does not exist.
func severalByName(n int) kind {
	a, b := user(n), user(n/2+3)
	switch n % 7 {
	case 1:
		return kind{name: "path filter", target: "/all/" + a, topics: allTopics, wants: ofKeys(a)}
	case 2:
		return kind{name: "two topics", target: "/two", topics: twoTopics}
	case 3:
		return kind{name: "two topics by query filter", target: "/two/pick?a=" + a + "&b=" + b, topics: twoTopics, wants: ofKeys(a, b)}
	case 4:
		return kind{name: "from the beginning", target: "/early", topics: allTopics}
	case 5:
		return kind{name: "filter from the beginning", target: "/early/" + a, topics: allTopics, wants: ofKeys(a)}
	case 6:
		return kind{name: "one topic", target: "/one", topics: []int{0}}
	}
	return kind{name: "all topics", target: "/all", topics: allTopics}
}

// severalStates are clients of snapshot routes of several topics.
func severalStates(n int) kind {
	a := user(n)
	switch n % 4 {
	case 1:
		return kind{name: "snapshot by filter", target: "/state/" + a, topics: allTopics, wants: ofKeys(a), state: true}
	case 2:
		return kind{name: "snapshot of two topics", target: "/state-two", topics: twoTopics, state: true}
	}
	return kind{name: "snapshot of all topics", target: "/state", topics: allTopics, state: true}
}

// ofKeys wants the records of some keys.
func ofKeys(keys ...string) func(got) bool {
	want := map[uint32]bool{}
	for _, k := range keys {
		want[keySum([]byte(k))] = true
	}
	return func(g got) bool { return want[g.key] }
}

// routes is the gateways' file. Those of several topics call them a, b and c.
func (o *options) routes() string {
	file, state := `routes:
  - {path: /events, topic: TOPIC, format: envelope}
  - {path: "/users/{user}", topic: TOPIC, format: envelope, filter: [{key: "{user}"}]}
  - {path: /pick, topic: TOPIC, format: envelope, filter: [{key: "{a}"}, {key: "{b}"}]}
  - {path: "/topics/{topic}", topic: "{topic}", allow: [TOPIC], format: envelope}
  - {path: /early, topic: TOPIC, format: envelope, start: earliest}
  - {path: "/early/{user}", topic: TOPIC, format: envelope, start: earliest, filter: [{key: "{user}"}]}
`, `
  - {path: /state, topic: TOPIC, format: envelope, start: snapshot}
`
	if len(o.topics) > 1 {
		file, state = `routes:
  - {path: /all, topics: [c, a, b], format: envelope}
  - {path: "/all/{user}", topics: [c, a, b], format: envelope, filter: [{key: "{user}"}]}
  - {path: /early, topics: [c, a, b], format: envelope, start: earliest}
  - {path: "/early/{user}", topics: [c, a, b], format: envelope, start: earliest, filter: [{key: "{user}"}]}
  - {path: /two, topics: [b, c], format: envelope}
  - {path: /two/pick, topics: [b, c], format: envelope, filter: [{key: "{a}"}, {key: "{b}"}]}
  - {path: /one, topic: a, format: envelope}
  - {path: "/beside/{topic}", topics: [b, "{topic}"], allow: [a, c], format: envelope}
  - {path: "/beside/{topic}/{user}", topics: [b, "{topic}"], allow: [a, c], format: envelope, filter: [{key: "{user}"}]}
`, `
  - {path: /state, topics: [c, a, b], format: envelope, start: snapshot}
  - {path: "/state/{user}", topics: [c, a, b], format: envelope, start: snapshot, filter: [{key: "{user}"}]}
  - {path: /state-two, topics: [b, c], format: envelope, start: snapshot}
`
	}
	if o.compacted {
		file += state
	}
	return strings.ReplaceAll(file, "TOPIC", o.topics[0].name)
}
