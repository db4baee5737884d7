package bench

import (
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	began := time.Now()
	p := NewPacer(1000)
	var before time.Time
	for i := range 50 {
		due := p.Wait()
		if i > 0 && due.Sub(before) != time.Millisecond {
			t.Fatalf("event %d is due %v after the one before, want 1ms", i, due.Sub(before))
		}
		if time.Now().Before(due) {
			t.Fatalf("event %d came before it was due", i)
		}
		before = due
	}
	if took := time.Since(began); took < 49*time.Millisecond {
		t.Errorf("50 events took %v, want at least 49ms", took)
	}
	// An open loop: what comes late is due when it was due.
	sleepUntil(p.Due().Add(20 * time.Millisecond))
	if due := p.Wait(); due.Sub(before) != time.Millisecond {
		t.Errorf("after a pause the next event is due %v after the one before, want 1ms", due.Sub(before))
	}
	if p.Behind() < 20*time.Millisecond {
		t.Errorf("behind %v, want at least 20ms", p.Behind())
	}
}
