package chaos

import (
	"slices"

	"tailcast/internal/testkit"
)

// recreated plays a run in whose middle one of the topics is deleted and
// another of its name made, with other partitions. Every client that had a
// stream of it before is told so once, wherever it was meanwhile, and gets all
// of the new topic; in the others it goes on.
func (r *run) recreated(topic, parts int, replicas int16) {
	t := r.t
	t.Helper()
	name := r.o.topics[topic].name
	r.o.judge = func(is told) error {
		if is.reason != "recreated" || len(is.lost) > 0 || !slices.Equal(is.anew, []int{topic}) {
			return none(is)
		}
		for l, next := range is.after {
			if topicOf(l) == topic && next != 0 || topicOf(l) != topic && next < is.before[l] {
				return none(is)
			}
		}
		return nil
	}
	had := map[int]bool{} // clients that had a stream of the former topic
	r.o.between = func() {
		if _, err := r.admin().DeleteTopic(r.within(), name); err != nil {
			t.Fatalf("delete the topic: %v", err)
		}
		r.parts[topic].Store(int32(parts))
		testkit.Eventually(t, patience, "creation of another topic", func() bool {
			_, err := r.admin().CreateTopic(r.within(), int32(parts), replicas, nil, name)
			return err == nil
		})
		for _, c := range r.clients {
			if c.records.Load() > 0 && slices.Contains(c.kind.topics, topic) {
				had[c.n] = true
			}
		}
		r.acked.forget(topic)
		r.adm = nil // its client knows the former topic
	}
	r.play()
	for _, c := range r.clients {
		if want := []string{"recreated"}; had[c.n] && !slices.Equal(c.reasons, want) {
			t.Errorf("client %d was told %q, want %q\n%s", c.n, c.reasons, want, c.trace.String())
		}
	}
}
