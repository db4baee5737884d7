package loop

import (
	"net/netip"
	"time"

	"tailcast/auth"
	"tailcast/frame"
	"tailcast/http1"
)

// checker is what finds and checks the token of a request: a route's guard, or
// an answer to a challenge.
type checker interface {
	Find(r *http1.Request, scratch []byte) ([]byte, *auth.Refusal)
	Check(token []byte, addr netip.Addr, bytes int, done func(*auth.Check)) (*auth.Check, *auth.Token, *auth.Refusal)
}

// check returns the verdict on the token of a request. Neither token nor refusal
// means that it is still to come: the request is to wait for it (await), and
// comes here again when it is there.
func (l *Loop) check(c *conn, r *http1.Request, by checker) (*auth.Token, *auth.Refusal) {
	if done := c.in.check; done != nil {
		c.in.check = nil
		return done.Token, done.Refusal
	}
	token, refusal := by.Find(r, l.out[:0])
	if refusal != nil {
		return nil, refusal
	}
	done := func(k *auth.Check) { l.verdicts.put(judged{c, k}, l.waker) }
	check, known, refusal := by.Check(token, c.addr(), r.Size(), done)
	c.in.check = check
	return known, refusal
}

// await has a request wait for the verdict on its token. Nothing of it is kept
// but its bytes, which are read again then.
func (l *Loop) await(c *conn) bool {
	c.state = stateGuard
	l.wheel.set(c, l.now+l.srv.waits.guard)
	return true
}

// judged is a check that is done, and the connection that asked for it. Others
// than the loop carry it and look at neither.
type judged struct {
	c     *conn
	check *auth.Check
}

// takeVerdicts lets requests go on whose tokens were checked, until turnMax is
// over; it reports whether there are more.
func (l *Loop) takeVerdicts() (more bool) {
	l.judged = l.verdicts.take(l.judged)
	n := 0
	for until := l.now + turnMax; n < len(l.judged) && l.now < until; n++ {
		if j := l.judged[n]; j.c.state == stateGuard && j.c.in.check == j.check {
			l.again(j.c)
		}
		l.tell()
	}
	rest := copy(l.judged, l.judged[n:])
	clear(l.judged[rest:])
	l.judged = l.judged[:rest]
	return rest > 0
}

// again reads a request once more, now that there is a verdict on its token, or
// an answer to what it asked (wait). It must not be called for the connection
// whose OnTraffic runs.
func (l *Loop) again(c *conn) {
	in := c.in
	if _, err := in.parser.Parse(in.head, &l.req); err != nil {
		panic("BUG: loop: a request can't be read again")
	}
	c.state = stateHead
	ok := l.request(c, &l.req)
	if c.in != nil && c.state != stateAsking {
		l.forgetAsking(c.in)
	}
	switch {
	case !ok:
		l.close(c, c.reason)
	case c.in != nil && c.state == stateHead:
		l.rest(c)
	}
}

// answerLate answers a request for which there is no verdict in time.
func (l *Loop) answerLate(c *conn) {
	c.in.check.Abandon()
	c.in.check = &auth.Check{Refusal: auth.ErrLate}
	l.again(c)
}

// deny answers a request that its guard refuses. A stream that may be opened
// later is: for EventSource any status but 200 means never.
func (l *Loop) deny(c *conn, r *http1.Request, why *auth.Refusal) bool {
	if why.Later && r.Method != http1.MethodPost {
		c.plain = r.Minor == 0
		l.out = http1.AppendStreamHead(l.out[:0], r.Minor, l.date.now(), l.fields)
		l.note(c, r, 200)
		return l.shed(c, shedGuard)
	}
	a := http1.Answer{Status: why.Status, Body: why.Reason}
	if challenge := why.Challenge(); challenge != "" {
		l.fields = append(l.fields, "WWW-Authenticate: "...)
		l.fields = append(l.fields, challenge...)
		l.fields = append(l.fields, "\r\n"...)
	}
	if why.IsElsewhere() {
		a.ContentType = "application/json"
	}
	a.Fields = l.fields
	return l.answer(c, r, &a)
}

// renew takes the answer to a challenge. l.path is that of the request.
func (l *Loop) renew(c *conn, r *http1.Request, g *auth.Guard) bool {
	var by checker
	if c.in.check == nil {
		switch {
		case !auth.IsAnswer(r.Value(http1.ContentType)):
			return l.answer(c, r, &http1.Answer{Status: 415, Fields: l.fields, Body: "what is posted here is " + auth.ChallengeType})
		case r.HasBody():
			return l.answer(c, r, &http1.Answer{Status: 400, Fields: l.fields, Body: "an answer to a challenge has no body; its token comes in the Authorization header"})
		}
		answer, refusal := g.Answer(r, l.path)
		if refusal != nil {
			return l.deny(c, r, refusal)
		}
		by = answer
	}
	token, refusal := l.check(c, r, by)
	switch {
	case refusal != nil:
		return l.deny(c, r, refusal)
	case token == nil:
		return l.await(c)
	}
	return l.answer(c, r, &http1.Answer{Status: 204, Fields: l.fields})
}

// lease is the right of a guarded stream to go on. Loop only.
type lease struct {
	*auth.Lease
	oldest time.Duration // since the loop began: the end by --max-age; 0: none
	ask    []byte        // a challenge that waits for the frame before it
	askAt  int64         // where that ends; of a filtered stream it is known otherwise
}

// grant gives a stream the right to go on that its token is.
func (c *conn) grant(s *lease) {
	if c.edge == nil {
		c.edge = &edge{}
	}
	c.edge.lease = s
}

// unlease ends the right of a stream to go on, if it has one.
func (c *conn) unlease() {
	if s := c.lease(); s != nil {
		s.Close()
		c.edge.lease = nil
	}
}

// watch sets the deadline of a guarded stream to what comes next: a challenge,
// the end of its token, or --max-age.
func (l *Loop) watch(c *conn, s *lease) {
	in, _ := s.Next()
	at := l.now + min(max(in, 0), watchMax)
	if s.oldest > 0 {
		at = min(at, s.oldest)
	}
	l.wheel.set(c, at)
}

// streamDue is called when the deadline of a stream has come.
func (l *Loop) streamDue(c *conn) {
	s := c.lease()
	if s == nil || s.oldest > 0 && s.oldest <= l.now {
		l.end(c, closeAge)
		return
	}
	switch in, challenge := s.Next(); {
	case in > 0: // it was renewed, or clocks differ
		l.watch(c, s)
	case challenge:
		l.challenge(c, s)
	default:
		l.end(c, closeExpired)
	}
}

// challenge asks the client of a stream for its next token, as soon as the frame
// is whole that it is in.
func (l *Loop) challenge(c *conn, s *lease) {
	ask := frame.AppendChallenge(nil, s.Challenge())
	l.watch(c, s)
	switch {
	case c.resume != nil: // the stream waits for its feed
		if c.resume.Position != nil {
			// It was told no id on this connection yet, and would forget its
			// own with the event (WHATWG HTML 9.2.6).
			c.hold(l.plainly(c, frame.AppendIDBlock(nil, frame.AppendID(nil, c.resume.Position))))
		}
		c.hold(l.plainly(c, ask))
		if l.flush(c) == pumpBroken {
			l.close(c, c.reason)
		}
	case c.own != nil: // between two frames
		c.hold(l.plainly(c, ask))
		l.after(c, l.pump(c))
	default:
		s.ask, s.askAt = ask, c.stream.reader.Boundary(c.place)
		l.after(c, l.pump(c))
	}
}

// sayChallenge writes the challenge of a stream that has come to the end of a frame.
func (l *Loop) sayChallenge(c *conn, s *lease) pumpResult {
	c.hold(l.plainly(c, s.ask))
	s.ask = nil
	return l.flush(c)
}
