package loop

import (
	"errors"
	"time"

	"tailcast/auth"
	"tailcast/frame"
	"tailcast/http1"
	"tailcast/hub"
	"tailcast/route"
)

// inbound is what a connection holds while a request is unfinished.
type inbound struct {
	parser http1.Parser
	head   []byte // of the request so far; at most http1.HeadMax and one read
	body   http1.Body
	keep   bool        // the connection goes on behind the body
	check  *auth.Check // of the token of the request in head, in stateGuard and until it is answered
	asking *asking     // the request waits for an answer, or did; nil for most
}

// idleInboundMax bounds the inbounds a loop keeps for reuse: as many clients as
// are in the middle of a head at a time, but for attacks.
const idleInboundMax = 64

func (l *Loop) inboundOf(c *conn) *inbound {
	if c.in != nil {
		return c.in
	}
	if n := len(l.idle); n > 0 {
		c.in, l.idle = l.idle[n-1], l.idle[:n-1]
	} else {
		c.in = &inbound{}
	}
	return c.in
}

func (l *Loop) putInbound(c *conn) {
	in := c.in
	l.forgetAsking(in)
	c.in = nil
	if len(l.idle) == idleInboundMax {
		return
	}
	in.parser.Reset()
	in.head, in.check = in.head[:0], nil
	l.idle = append(l.idle, in)
}

// receive takes what a client sent. It is false when the connection is to be
// closed, for the reason in c.reason. b is borrowed.
func (l *Loop) receive(c *conn, b []byte) bool {
	for len(b) > 0 {
		var ok bool
		switch c.state {
		case stateHead:
			b, ok = l.readHead(c, b)
		case stateBody:
			b, ok = l.readBody(c, b)
		case stateProxy:
			b, ok = l.readProxy(c, b)
		default:
			return l.discard(c, len(b))
		}
		if !ok {
			return false
		}
	}
	return true
}

// readHead takes bytes of a request head, and the request when it is whole.
func (l *Loop) readHead(c *conn, b []byte) (rest []byte, ok bool) {
	in := l.inboundOf(c)
	head := b
	if len(in.head) > 0 {
		in.head = append(in.head, b...)
		head = in.head
	} else {
		l.wheel.set(c, l.now+l.srv.cfg.HeaderTimeout) // from the first byte on
	}
	n, err := in.parser.Parse(head, &l.req)
	switch {
	case err == http1.ErrIncomplete:
		if len(in.head) == 0 {
			in.head = append(in.head, b...)
		}
		return nil, true
	case err != nil:
		return nil, l.refuse(c, err, nil, closeBadRequest)
	}
	// The request aliases head, which may be in.head: done with before reuse.
	rest = b[len(b)-(len(head)-n):]
	ok = l.request(c, &l.req)
	switch {
	case c.in == nil:
	case c.state == stateAway: // with all that came
		in.head = append(in.head[:0], head...)
	case c.state == stateHead:
		l.rest(c)
	case c.state == stateGuard, c.state == stateAsking:
		in.head = append(in.head[:0], head[:n]...)
	}
	return rest, ok
}

// readBody takes bytes of a body nobody reads.
func (l *Loop) readBody(c *conn, b []byte) (rest []byte, ok bool) {
	for len(b) > 0 && !c.in.body.Done() {
		_, n, err := c.in.body.Next(b)
		if err != nil {
			// The request was answered; what follows can't be framed.
			return nil, l.linger(c, closeBadRequest)
		}
		b = b[n:]
	}
	if !c.in.body.Done() {
		return nil, true
	}
	if !c.in.keep || l.draining.begun {
		return nil, l.linger(c, closeDone)
	}
	c.state = stateHead
	l.rest(c)
	return b, true
}

// rest waits for the next request of a connection.
func (l *Loop) rest(c *conn) {
	l.putInbound(c)
	l.wheel.set(c, l.now+l.srv.waits.keepAlive)
}

// discard counts bytes that nobody reads: behind the request of a stream, or
// behind the last answer.
func (l *Loop) discard(c *conn, n int) bool {
	limit := surplusBytesMax
	if c.state == stateLinger {
		limit = discardBytesMax
	}
	if c.surplus += int32(n); int(c.surplus) <= limit {
		return true
	}
	if c.state == stateStream || c.state == stateGuard || c.state == stateAsking {
		c.reason = closeSurplus
	}
	c.reset()
	return false
}

// request answers one request.
func (l *Loop) request(c *conn, r *http1.Request) bool {
	if r.Form == http1.FormAsterisk {
		return l.answer(c, r, &http1.Answer{Status: 204, Allow: route.Methods})
	}
	var origin []byte
	if !r.Repeated(http1.Origin) {
		origin = r.Value(http1.Origin)
	}
	path, err := http1.AppendPath(l.path[:0], r.Path)
	l.path = path
	if err != nil {
		return l.refuse(c, err, origin, closeBadRequest)
	}
	host, _ := http1.SplitHost(r.Host)
	rt, found := l.srv.site.Routes.Lookup(host, path, &l.values.Path)
	cors := l.srv.site.CORS
	if found && rt.CORS != nil {
		cors = rt.CORS
	}
	grant := cors.Decide(origin)
	l.fields = grant.AppendFields(l.fields[:0])
	var guard *auth.Guard
	methods := route.Methods
	if found {
		if guard = l.srv.site.Serves[rt.Feed].Guard; guard != nil {
			methods = route.GuardedMethods
		}
	}
	switch {
	case !found && l.srv.site.Files != nil && (r.Method == http1.MethodGet || r.Method == http1.MethodHead) && !r.HasBody():
		c.state = stateAway
		return false
	case !found && l.srv.site.Files != nil && r.Method != http1.MethodGet && r.Method != http1.MethodHead:
		return l.answer(c, r, &http1.Answer{Status: 405, Allow: route.FileMethods, Fields: l.fields, Body: "files are read with GET"})
	case !found && r.Method == http1.MethodOther: // which no path knows (RFC 9110 15.6.2)
		return l.answer(c, r, &http1.Answer{Status: 501, Fields: l.fields, Body: "the only methods known are " + route.Methods + " and POST"})
	case !found:
		return l.answer(c, r, &http1.Answer{Status: 404, Fields: l.fields, Body: "no stream at this path"})
	case r.Method == http1.MethodOptions:
		if route.IsPreflight(origin, r.Value(http1.RequestMethod)) {
			l.fields = grant.AppendPreflightFields(l.fields[:0], guard != nil)
		}
		return l.answer(c, r, &http1.Answer{Status: 204, Allow: methods, Fields: l.fields})
	case r.Method == http1.MethodPost && guard != nil:
		return l.renew(c, r, guard)
	case r.Method != http1.MethodGet && r.Method != http1.MethodHead:
		return l.answer(c, r, &http1.Answer{
			Status: 405, Allow: methods, Fields: l.fields,
			Body: "a stream is read with GET",
		})
	case r.HasBody():
		return l.answer(c, r, &http1.Answer{
			Status: 400, Fields: l.fields, Close: true,
			Body: "a GET or HEAD request has no body here",
		})
	}
	var token *auth.Token
	l.values.Query, l.values.Claims = r.Query, nil
	if guard != nil {
		var refusal *auth.Refusal
		if token, refusal = l.check(c, r, guard); refusal != nil {
			return l.deny(c, r, refusal)
		} else if token == nil {
			return l.await(c)
		}
		l.values.Claims = route.ClaimMap(token.Claims)
	}
	return l.open(c, r, &l.srv.site.Serves[rt.Feed], token)
}

// notOpened answers a request whose feed is not open, or has it wait. token is
// that of a guarded route.
func (l *Loop) notOpened(c *conn, r *http1.Request, err error, token *auth.Token) bool {
	var later *Later
	switch {
	case errors.As(err, &later):
		return l.wait(c, later, token)
	case errors.Is(err, ErrFull):
		return l.turnAway(c, shedFeed)
	}
	return l.refused(c, r, err)
}

// refused answers a request that asks for what it can't have.
func (l *Loop) refused(c *conn, r *http1.Request, err error) bool {
	no := &route.Refusal{Status: 500, Reason: "the stream can't be opened"}
	errors.As(err, &no)
	if no.Claim {
		l.fields = append(l.fields, "WWW-Authenticate: "+auth.LacksClaim+"\r\n"...)
	}
	return l.answer(c, r, &http1.Answer{Status: no.Status, Fields: l.fields, Body: no.Reason})
}

// answer writes a short answer and decides what becomes of the connection.
func (l *Loop) answer(c *conn, r *http1.Request, a *http1.Answer) bool {
	a.Date = l.date.now()
	a.Head = r.Method == http1.MethodHead
	in := c.in
	l.answers++
	in.keep = r.KeepAlive() && !a.Close && !l.draining.begun && c.surplus == 0 && l.answers < pipelinedMax
	pending := r.HasBody()
	if pending && (r.WantsContinue() || in.body.Start(r, bodyBytesMax) != nil) {
		// The client may or may not send the body it announced: nobody
		// knows where the next request begins.
		in.keep, pending = false, false
	}
	a.Close = !in.keep
	l.out = http1.AppendAnswer(l.out[:0], a)
	l.note(c, r, a.Status)
	if !pending {
		return l.answered(c, l.out, in.keep)
	}
	if !l.write(c, l.out) {
		return false
	}
	c.state = stateBody
	l.wheel.set(c, l.now+l.srv.cfg.HeaderTimeout)
	return true
}

// answered writes a whole answer; unless keep, the connection lingers behind it.
func (l *Loop) answered(c *conn, b []byte, keep bool) bool {
	if !l.write(c, b) {
		return false
	}
	if keep {
		return true
	}
	return l.linger(c, closeDone)
}

// write writes b at once. A client that sends requests and reads no answers
// until the socket is full is not waited for.
func (l *Loop) write(c *conn, b []byte) bool {
	n, err := l.send(c, b)
	switch {
	case err != nil:
		return false
	case n < len(b) || c.unsent():
		c.reason = closeError
		c.reset()
		return false
	}
	return true
}

// refuse answers a request that could not be read, and ends the connection.
// Its method is in l.req, and origin is the page's, as far as they were read.
func (l *Loop) refuse(c *conn, err error, origin []byte, why closeReason) bool {
	bad := &http1.Error{Status: 400, Reason: err.Error()}
	errors.As(err, &bad)
	l.fields = l.srv.site.CORS.Decide(origin).AppendFields(l.fields[:0])
	l.out = http1.AppendAnswer(l.out[:0], &http1.Answer{
		Status: bad.Status, Date: l.date.now(), Body: bad.Reason, Close: true, Fields: l.fields,
		Head: l.req.Method == http1.MethodHead,
	})
	l.note(c, nil, bad.Status)
	return l.write(c, l.out) && l.linger(c, why)
}

var errHeadLate = &http1.Error{Status: 408, Reason: "the request head did not come in time (--header-timeout)"}

// headLate ends a connection that sent no whole head in time; one that sent
// none of it, a browser's spare one, gets no answer it did not ask for.
func (l *Loop) headLate(c *conn) {
	if c.in != nil {
		_, _ = c.in.parser.Parse(c.in.head, &l.req) // for the method: there is no more than was read
	}
	if c.in == nil || len(c.in.head) == 0 || !l.refuse(c, errHeadLate, nil, closeTimeout) {
		l.hangUp(c, closeTimeout)
	}
}

// linger ends our side and waits a bounded time for the peer to end its own:
// closing at once would make the kernel send RST for bytes still coming in,
// and the RST could overtake the answer (RFC 9112 9.6).
func (l *Loop) linger(c *conn, why closeReason) bool {
	c.reason = why
	if l.notify(c) != pumpEnded || c.shut() != nil {
		return false
	}
	if c.in != nil {
		l.putInbound(c)
	}
	c.state, c.surplus = stateLinger, 0
	l.wheel.set(c, l.now+l.srv.waits.linger)
	return true
}

// open begins a stream, or tells a HEAD how it would begin, which may be that
// it would not (RFC 9110 9.3.2). l.values are those of the request, and
// expanded before start uses their memory. token is that of a guarded route.
func (l *Loop) open(c *conn, r *http1.Request, what *Serving, token *auth.Token) bool {
	if l.draining.begun {
		return l.turnAway(c, shedDrain)
	}
	feed := what.Feed
	if what.Open != nil {
		var err error
		if feed, err = what.Open(&l.values, c.in.asking == nil || !c.in.asking.late); err != nil {
			return l.notOpened(c, r, err, token)
		}
		if r.Method == http1.MethodHead {
			defer feed.Forgo()
		} else {
			defer feed.Release()
		}
	}
	if feed.Refused() {
		return l.turnAway(c, shedFeed)
	}
	var filter *hub.Filter
	if what.Filter != nil {
		var err error
		if filter, err = what.Filter.of(feed, &l.values); err != nil {
			return l.refused(c, r, err)
		}
	}
	l.out = http1.AppendStreamHead(l.out[:0], r.Minor, l.date.now(), l.fields)
	logged := l.note(c, r, 200)
	if r.Method == http1.MethodHead {
		return l.answered(c, l.out, false)
	}
	c.plain = r.Minor == 0
	if filter != nil {
		c.filtered = &filtered{Watch: hub.Watch{Filter: filter, Conn: c}}
	}
	seat, why, ok := what.room.take(token)
	if !ok {
		return l.shed(c, why)
	}
	c.sit(seat)
	if logged {
		l.noteOpen(c)
	}
	var oldest time.Duration
	if age := l.srv.cfg.MaxAge; age > 0 {
		oldest = l.now + jitter(l.rand, age)
	}
	if token != nil {
		c.grant(&lease{Lease: what.Guard.Lease(token, l.path), oldest: oldest})
	}
	start := l.start(c, r, what)
	c.owesLive = start.Policy.From != hub.FromLatest
	if c.filtered != nil {
		start.Filter = c.filtered.Filter
	}
	l.putInbound(c)
	c.state = stateStream
	l.wheel.clear(c)
	switch s := c.lease(); {
	case s != nil:
		l.watch(c, s)
	case oldest > 0:
		l.wheel.set(c, oldest)
	}
	s := l.streamsOf(feed)
	c.stream = s
	s.n++
	s.reader.Attached()
	l.counts.streams++
	return l.place(c, start, l.retry())
}

// start is where the client asks to go on, and where it begins otherwise.
func (l *Loop) start(c *conn, r *http1.Request, what *Serving) hub.Start {
	start := hub.Start{Policy: what.Start, Restart: what.Restart, Addr: c.addr()}
	if what.ClientStart {
		l.chosenStart(&start, r.Query)
	}
	resume := route.ResumeID(r.Value(http1.LastEventID), r.Repeated(http1.LastEventID), r.Query, l.path[:0])
	switch resume.Kind {
	case route.ResumeNone:
	case route.ResumeForeign:
		start.Foreign = true
	case route.ResumeGiven:
		goOn(&start, resume.ID)
	}
	return start
}

// goOn has a stream go on behind an id of ours, or of a gateway that its client
// comes over from.
func goOn(start *hub.Start, id []byte) {
	pos, err := frame.ParseID(id)
	if err == nil {
		start.Position = pos
		return
	}
	other, err := frame.ParseForeignID(id)
	if err != nil {
		start.Foreign = true
		return
	}
	if start.Position = other.Position; other.Since > 0 && start.Policy.From != hub.FromSnapshot {
		start.Policy, start.Asked = hub.Policy{From: hub.FromTime, N: other.Since}, true
	}
}

// chosenStart has a stream begin where its client asks to, if it does.
func (l *Loop) chosenStart(start *hub.Start, query []byte) {
	asked := route.StartOf(query, l.path[:0])
	switch asked.Kind {
	case route.StartNone:
		return
	case route.StartForeign:
		start.Foreign = true
		return
	case route.StartSince:
		start.Policy = hub.Policy{From: hub.FromTime, N: asked.N}
	case route.StartLast:
		start.Policy = hub.Policy{From: hub.FromLast, N: asked.N}
	}
	start.Asked = true
}

// place gives a stream its place in the log and writes its first bytes: what
// is in l.out (the head, or nothing for a stream that waited), then its first
// block. It is false when the socket failed.
func (l *Loop) place(c *conn, start hub.Start, retry int) bool {
	head := len(l.out)
	at, out := c.stream.reader.Attach(start, retry, l.out)
	l.out = out
	c.place, c.behind = at.Place, at.Behind
	if c.own = at.Own; c.own != nil {
		c.own.Conn, c.behind = c, true
	}
	c.hold(out[:head])
	l.holdFrames(c, out[head:])
	if len(c.pending.B) > 0 && l.flush(c) == pumpBroken {
		return false
	}
	if at.Waiting {
		kept := start // so that only those that wait pay for it
		c.resume = &kept
		c.stream.waiting.add(c)
		return true
	}
	if c.filtered != nil && at.Own == nil {
		l.file(c, at.Label)
	}
	got := l.pump(c)
	if c.owesLive {
		got = l.sayLive(c, got)
	}
	switch got {
	case pumpOverwritten:
		c.reason = closeOverwritten
		return false
	case pumpBroken, pumpEnded:
		return false
	default:
		l.after(c, got)
	}
	return true
}

// admit places a stream that waited for its feed to open.
func (l *Loop) admit(c *conn) {
	if c.stream.reader.Feed().Refused() {
		l.end(c, closeFeed)
		return
	}
	l.unlist(c)
	start := *c.resume
	c.resume = nil
	l.out = l.out[:0]
	if !l.place(c, start, 0) {
		l.close(c, c.reason)
	}
}
