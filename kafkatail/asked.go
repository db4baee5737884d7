package kafkatail

import (
	"context"
	"sync"
	"time"
)

// asked puts a question to the brokers once for all who want its answer: who
// comes soon after it was asked waits for it, or takes what was answered. An error is for those who waited; the next one asks again.
// Safe from any goroutine.
type asked[T any] struct {
	life   context.Context // of the questions; who waits for one may leave before
	ageMax time.Duration   // how old an answer may be

	mu      sync.Mutex
	answers map[string]*answer[T]
	closed  bool
	under   sync.WaitGroup
}

// answer is what brokers said, or will say.
type answer[T any] struct {
	at    time.Time // when it was asked
	done  chan struct{}
	value T // this and err are set before done is closed
	err   error
}

func newAsked[T any](life context.Context, ageMax time.Duration) *asked[T] {
	return &asked[T]{life: life, ageMax: ageMax, answers: make(map[string]*answer[T])}
}

// get returns the answer for key, by ask if there is none that is young enough.
func (a *asked[T]) get(ctx context.Context, key string, ask func(context.Context) (T, error)) (*answer[T], error) {
	an, err := a.find(key, ask)
	if err != nil {
		return nil, err
	}
	select {
	case <-an.done:
		return an, an.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *asked[T]) find(key string, ask func(context.Context) (T, error)) (*answer[T], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errNotRunning
	}
	if an := a.answers[key]; an != nil && an.usable(a.ageMax) {
		return an, nil
	}
	a.trim()
	an := &answer[T]{at: time.Now(), done: make(chan struct{})}
	a.answers[key] = an
	a.under.Go(func() {
		defer close(an.done)
		an.value, an.err = ask(a.life)
	})
	return an, nil
}

// usable reports whether an answer is, or will be, no error as far as known,
// and was asked for recently enough: brokers that take seconds answer for when
// they were asked.
func (an *answer[T]) usable(ageMax time.Duration) bool {
	return time.Since(an.at) < ageMax && (!an.over() || an.err == nil)
}

func (an *answer[T]) over() bool {
	select {
	case <-an.done:
		return true
	default:
		return false
	}
}

// trim keeps the answers from growing with the topics that were ever asked
// about. mu must be held.
func (a *asked[T]) trim() {
	if len(a.answers) < answersMax {
		return
	}
	for key, an := range a.answers {
		if an.over() {
			delete(a.answers, key)
		}
	}
}

// forget has the question asked again, unless it was since an.
func (a *asked[T]) forget(key string, an *answer[T]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers[key] == an {
		delete(a.answers, key)
	}
}

// close refuses questions from now on and waits for those under way, which
// life must have ended.
func (a *asked[T]) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.under.Wait()
}
