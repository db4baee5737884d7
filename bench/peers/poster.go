package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"tailcast/bench"
	"tailcast/bench/harness"
)

const (
	// ackWithin bounds the wait for the answers to an order's requests.
	ackWithin = 30 * time.Second
	// answerBytesMax bounds what of an answer is looked at.
	answerBytesMax = 4 << 10
)

// startPoster starts a publisher that posts records to where, between the texts
// before and after, on the processors of the load.
func startPoster(s *harness.Setup, t *tools, where, before, after string) (harness.Publisher, error) {
	p, err := s.Command(harness.OnLoad, t.self, "post", "-to", where, "-before", before, "-after", after,
		"-partitions", strconv.Itoa(s.Partitions), "-size", strconv.Itoa(s.Size))
	if err != nil {
		return nil, err
	}
	return harness.NewOrders(p), nil
}

// post is this program as a publisher: it takes orders on in.
func post(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var p poster
	f := flag.NewFlagSet("post", flag.ContinueOnError)
	to := f.String("to", "", "URL to post records to")
	f.StringVar(&p.before, "before", "", "text before a record")
	f.StringVar(&p.after, "after", "", "text behind a record")
	f.IntVar(&p.sequence.Partitions, "partitions", 1, "partitions that records are numbered by")
	f.IntVar(&p.size, "size", 200, "bytes of a record")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := p.dial(ctx, *to); err != nil {
		return fmt.Errorf("-to: %w", err)
	}
	defer func() { _ = p.conn.Close() }()
	return harness.ServeOrders(in, out, func(o bench.Order) bench.Published { return p.publish(ctx, o) })
}

// poster posts records on one connection and does not wait for an answer before
// the next one (RFC 9112 9.3.2), so that the pace is its own and not the
// server's.
type poster struct {
	before, after string
	size          int
	sequence      bench.Sequence
	conn          net.Conn
	path, host    string
	body, request []byte

	mu         sync.Mutex
	answered   *sync.Cond // mu; something below has changed
	acks       int64      // since the start
	partitions []int64    // the same, by partition
	err        error      // the first
}

func (p *poster) dial(ctx context.Context, to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	var d net.Dialer
	if p.conn, err = d.DialContext(ctx, "tcp4", u.Host); err != nil {
		return err
	}
	p.path, p.host = u.RequestURI(), u.Host
	p.partitions = make([]int64, p.sequence.Partitions)
	p.answered = sync.NewCond(&p.mu)
	go p.readAnswers()
	return nil
}

// publish carries out an order.
func (p *poster) publish(ctx context.Context, o bench.Order) bench.Published {
	began := time.Now()
	acks := p.acked()
	sent := acks
	behind := o.Pace(ctx, func(due time.Time) {
		if _, err := p.conn.Write(p.next(due)); err != nil {
			p.fail(err)
			return
		}
		sent++
	})
	p.await(sent)
	p.mu.Lock()
	defer p.mu.Unlock()
	done := bench.Published{
		Sent: p.acks - acks, Failed: o.Count - (p.acks - acks),
		Partitions: append([]int64(nil), p.partitions...), Seconds: time.Since(began).Seconds(),
		BehindMS: float64(behind) / float64(time.Millisecond),
	}
	if p.err != nil {
		done.Error = p.err.Error()
	}
	return done
}

// next is the request of the next record. It is good until the call after.
func (p *poster) next(due time.Time) []byte {
	p.body = append(p.body[:0], p.before...)
	p.body = p.sequence.Next(due).Append(p.body, p.size)
	p.body = append(p.body, p.after...)
	p.request = fmt.Appendf(p.request[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		p.path, p.host, len(p.body))
	p.request = append(p.request, p.body...)
	return p.request
}

func (p *poster) acked() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acks
}

// await returns when so many requests since the start are answered, or when no
// answer comes for a while, or a bad one.
func (p *poster) await(requests int64) {
	late := time.AfterFunc(ackWithin, func() { p.fail(fmt.Errorf("not all answered within %v", ackWithin)) })
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.acks < requests && p.err == nil {
		p.answered.Wait()
	}
}

// fail notes why the publisher is of no more use.
func (p *poster) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.answered.Broadcast()
}

// readAnswers counts the answers, which come in the order of the requests,
// until one is bad.
func (p *poster) readAnswers() {
	in := bufio.NewReader(p.conn)
	for n := 0; ; n++ {
		if err := readAnswer(in); err != nil {
			p.fail(err)
			return
		}
		p.mu.Lock()
		p.acks++
		p.partitions[n%len(p.partitions)]++
		p.answered.Broadcast()
		p.mu.Unlock()
	}
}

// readAnswer reads one answer. Centrifugo tells of errors in those with status
// 200.
func readAnswer(in *bufio.Reader) error {
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 || bytes.Contains(body, []byte(`"error":`)) {
		return fmt.Errorf("%s: %.200q", res.Status, body)
	}
	return res.Body.Close() // which reads what is left
}
