package loop

import (
	"errors"

	"tailcast/auth"
	"tailcast/http1"
)

// ErrFull is the error of a Serving.Open whose route has as many feeds as it may:
// the client is sent away and told when to come back.
var ErrFull = errors.New("the route has as many feeds as it may")

// Later is the error of a Serving.Open that can't say yet. Ask has the question
// asked and ready called, from any goroutine, when it is worth asking Open again.
type Later struct{ Ask func(ready func()) } //nolint:errname // it is an answer first

func (*Later) Error() string { return "it is not known yet" }

// asking is a request that waits for an answer from elsewhere, without a thread:
// its head is kept, and the request begins again from there.
type asking struct {
	c    *conn
	late bool // it has waited for askMax: Open is to do without
}

// wait has a request wait. The connection's inbound keeps its head, and the
// verdict on its token.
func (l *Loop) wait(c *conn, later *Later, token *auth.Token) bool {
	if c.in.asking == nil {
		if l.asks == asksMax {
			return l.turnAway(c, shedFeed)
		}
		l.asks++
		c.in.asking = &asking{c: c}
		l.wheel.set(c, l.now+askMax)
	}
	if c.state = stateAsking; token != nil {
		c.in.check = &auth.Check{Token: token}
	}
	a := c.in.asking
	later.Ask(func() { l.heardOf.put(a, l.waker) })
	return true
}

// takeAnswers takes up the requests whose questions are answered.
func (l *Loop) takeAnswers() {
	for _, a := range l.heardOf.take(nil) {
		if a.c.in != nil && a.c.in.asking == a { // else it was late, or its client left
			l.again(a.c)
		}
	}
}

// forgetAsking is for a request that waits no longer.
func (l *Loop) forgetAsking(in *inbound) {
	if in.asking != nil {
		in.asking = nil
		l.asks--
	}
}

// turnAway answers a request for a stream whose turn it is not: the head of one,
// when to come back, and the end.
func (l *Loop) turnAway(c *conn, why shedReason) bool {
	l.out = http1.AppendStreamHead(l.out[:0], l.req.Minor, l.date.now(), l.fields)
	l.note(c, &l.req, 200)
	c.plain = l.req.Minor == 0
	return l.shed(c, why)
}
