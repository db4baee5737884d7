package chaos

import (
	"slices"

	"tailcast/internal/testkit"
)

// recreated plays a run in whose middle the topic is deleted and another of
// its name made, with other partitions. Every client that had a stream before
// is told so once, wherever it was meanwhile, and gets all of the new topic.
func (r *run) recreated(parts int, replicas int16) {
	t := r.t
	t.Helper()
	r.o.judge = func(reason string, said []lost, before, after vector) error {
		if reason != "recreated" || len(said) > 0 || after != (vector{}) {
			return none(reason, said, before, after)
		}
		return nil
	}
	had := map[int]bool{} // clients that had a stream of the former topic
	r.o.between = func() {
		if _, err := r.admin().DeleteTopic(r.within(), r.o.topic); err != nil {
			t.Fatalf("delete the topic: %v", err)
		}
		r.parts.Store(int32(parts))
		testkit.Eventually(t, patience, "creation of another topic", func() bool {
			_, err := r.admin().CreateTopic(r.within(), int32(parts), replicas, nil, r.o.topic)
			return err == nil
		})
		for _, c := range r.clients {
			if c.records.Load() > 0 {
				had[c.n] = true
			}
		}
		r.adm = nil // its client knows the former topic
	}
	r.play()
	for _, c := range r.clients {
		if want := []string{"recreated"}; had[c.n] && !slices.Equal(c.reasons, want) {
			t.Errorf("client %d was told %q, want %q\n%s", c.n, c.reasons, want, c.trace.String())
		}
	}
}
