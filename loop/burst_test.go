package loop

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBurst: what is collected behind is a burst that has ended, once, and not
// more often than once in a minute.
func TestBurst(t *testing.T) {
	type step struct {
		seconds   int
		perSecond uint64
		want      int // collections by its end
	}
	for name, steps := range map[string][]step{
		"silence":                    {{600, 0, 0}},
		"clients that come and go":   {{600, calmMax, 0}},
		"a few at once":              {{1, burstMin - 1, 0}, {60, 0, 0}},
		"a burst":                    {{1, burstMin, 0}, {600, 0, 1}},
		"a burst that clients leave": {{1, burstMin, 0}, {600, calmMax, 1}},
		"a long burst":               {{300, calmMax + 1, 0}, {600, 0, 1}},
		"a flood":                    {{600, 2000, 0}},
		"another within a minute":    {{1, 1000, 0}, {9, 0, 1}, {1, 1000, 1}, {40, 0, 1}, {60, 0, 2}},
		"bursts all the time":        {{1, 1000, 0}, {1, 0, 1}, {1, 1000, 1}, {1, 0, 1}, {1, 1000, 1}, {55, 0, 1}, {5, 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h handshakes
				done, got := make(chan struct{}), 0
				go h.settle(done, func() { got++ })
				time.Sleep(burstLook / 2) //nolint:forbidigo // the bubble's clock, between two looks
				for _, s := range steps {
					for range s.seconds {
						h.begun.Add(s.perSecond)
						time.Sleep(burstLook) //nolint:forbidigo // the bubble's clock
					}
					synctest.Wait()
					if got != s.want {
						t.Errorf("%d seconds of %d handshakes: %d collections so far, want %d", s.seconds, s.perSecond, got, s.want)
					}
				}
				close(done)
			})
		})
	}
}
