package loop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tailcast/hub"
)

func TestMaxConns(t *testing.T) {
	s := start(t, func(as *setup) { as.MaxConns, as.Loops = 3, 2 })
	s.open(1)
	pages := []*page{s.page("HTTP/1.1", "/events"), s.page("HTTP/1.1", "/events"), s.page("HTTP/1.1", "/events")}
	for range 4 {
		s.isRefused("127.0.0.1")
	}
	if _, refused := s.srv.Accepted(); refused["max-conns"] != 4 {
		t.Errorf("refused: %v", refused)
	}
	pages[0].Close()
	eventually(t, "a place is free", func() bool { return s.srv.accepter.count() == 2 })
	pages[0] = s.page("HTTP/1.1", "/events")
	s.produce(0, "one")
	for _, p := range pages {
		if got := p.next(); got.Data != "one" {
			t.Errorf("got %v", got)
		}
	}
	eventually(t, "4 are counted", func() bool { // which is done when the loop has them already
		accepted, _ := s.srv.Accepted()
		return accepted == 4
	})
}

// isRefused connects from ip and gets a reset: EventSource comes back after
// one, and not after an answer.
func (s *site) isRefused(ip string) {
	s.t.Helper()
	c, err := s.from(ip)
	if err == nil {
		c.wasReset()
	} else if !errors.Is(err, syscall.ECONNRESET) { // it may come that soon
		s.t.Error(err)
	}
}

func TestMaxConnsPerIP(t *testing.T) {
	s := start(t, func(as *setup) { as.MaxConnsPerIP = 2 })
	s.open(1)
	first, second := s.dial(), s.dial()
	eventually(t, "both are there", func() bool { return s.srv.accepter.count() == 2 })
	s.isRefused("127.0.0.1")
	other, err := s.from("127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{first, second, other} {
		c.send(req("OPTIONS * HTTP/1.1"))
		if head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 204 ") {
			t.Fatalf("got %q", head)
		}
	}
	if _, refused := s.srv.Accepted(); refused["max-conns-per-ip"] != 1 || refused["max-conns"] != 0 {
		t.Errorf("refused: %v", refused)
	}
	first.Close()
	eventually(t, "a place is free", func() bool { return s.srv.accepter.count() == 2 })
	s.page("HTTP/1.1", "/events").Close()
	second.Close()
	other.Close()
	eventually(t, "no address is remembered", func() bool {
		return s.srv.accepter.perAddr.len() == 0
	})
}

// TestSurplus sends 10 MB behind the request of a stream: nothing of it is
// answered inside the stream, and nothing of it is kept.
func TestSurplus(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	p := s.page("HTTP/1.1", "/events", "Last-Event-ID: v1:")
	p.send(strings.Repeat(req("GET /nope HTTP/1.1"), 100)) // a few are let pass
	s.produce(0, "one")
	if got := p.next(); got.Data != "one" {
		t.Fatalf("got %v", got)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, _ = p.Write(bytes.Repeat([]byte(req("GET /nope HTTP/1.1")), 10_000_000/50))
	s.closed(closeSurplus, 1)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if events, _ := p.rest(); len(events) != 0 {
		t.Errorf("got %v in the stream", events)
	}
	if got := s.stats(); got.Answers[404] != 0 || got.Streams != 0 {
		t.Errorf("answers: %v, %d streams", got.Answers, got.Streams)
	}
}

// TestSurplusOfPeerThatGoes: reading on is how the end of a client is noticed.
func TestSurplusOfPeerThatGoes(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	p := s.page("HTTP/1.1", "/events")
	p.send("x")
	p.Close()
	s.closed(closePeer, 1)
}

// The process of TestDescriptorsRunOut has few file descriptors.
const (
	fewDescriptors    = 64
	fewDescriptorsEnv = "TAILCAST_TEST_FEW_DESCRIPTORS"
)

// TestDescriptorsRunOut runs a server in a process of its own until accept
// fails. The streams that are there go on, and who waits is taken when there
// are descriptors again.
func TestDescriptorsRunOut(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), fewDescriptorsEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	say := func(word string) string {
		t.Helper()
		if _, err := fmt.Fprintln(in, word); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			_ = cmd.Wait()
			t.Fatalf("the server is gone: %s", log.String())
		}
		return lines.Text()
	}
	s := &site{t: t, addr: say("addr")}
	var pages []*page
	for range 10 {
		pages = append(pages, s.page("HTTP/1.1", "/events"))
	}
	var waiting []*client
	for range 2 * fewDescriptors {
		c := s.dial()
		c.send(req("GET /events HTTP/1.1"))
		waiting = append(waiting, c)
	}
	eventually(t, "accept fails", func() bool { return say("refused") != "0" })
	for range 3 {
		say("produce")
		for _, p := range pages {
			if got := p.next(); got.Data != "one" {
				t.Fatalf("got %v", got)
			}
		}
	}
	last := waiting[len(waiting)-1]
	for _, c := range waiting[:len(waiting)-1] {
		c.Close()
	}
	if head := last.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Errorf("got %q", head)
	}
	for _, p := range pages {
		p.Close()
	}
	last.Close()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	if n := strings.Count(log.String(), "refused by the system"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// runWithFewDescriptors is the server of TestDescriptorsRunOut. It reads
// words from its standard input and answers each with a line.
func runWithFewDescriptors() error {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}); err != nil {
		return err
	}
	as := defaults()
	as.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	srv, err := New(as.Config)
	if err != nil {
		return err
	}
	s := &site{t: &testing.T{}, srv: srv}
	if err := srv.Serve(Listen{Plain: "127.0.0.1:0"}, s.serve(hub.New(as.hub, srv.Mailboxes()), &as)); err != nil {
		return err
	}
	s.open(1)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer := ""
		switch in.Text() {
		case "addr":
			answer = srv.Addr().String()
		case "refused":
			_, refused := srv.Accepted()
			answer = strconv.FormatUint(refused["system"], 10)
		case "produce":
			s.produce(0, "one")
		}
		if _, err := io.WriteString(os.Stdout, answer+"\n"); err != nil {
			return err
		}
	}
	srv.Stop(context.Background())
	return nil
}

// TestNewWithoutDescriptors: what a Server lacks is an error, and nothing is
// left of the loops that were made.
func TestNewWithoutDescriptors(t *testing.T) {
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	as := defaults()
	as.Loops, as.Log = 3, slog.New(slog.NewTextHandler(t.Output(), nil))
	free := freeDescriptor(t)
	failed := 0
	for n := range 3 * 8 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free + n), Max: had.Max}); err != nil {
			t.Fatal(err)
		}
		srv, err := New(as.Config)
		if lerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); lerr != nil {
			t.Fatal(lerr)
		}
		if err == nil {
			srv.Stop(t.Context())
		} else {
			failed++
		}
		if now := freeDescriptor(t); now != free {
			t.Fatalf("with %d descriptors (%v) some are left open: the next one is %d, was %d", n, err, now, free)
		}
	}
	if failed < 8 {
		t.Errorf("failed %d times only", failed)
	}
}

// freeDescriptor is the descriptor that the next file opened would get.
func freeDescriptor(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	return fd
}

// TestEnrolFails: a connection that a loop can't take is not counted any more.
func TestEnrolFails(t *testing.T) {
	s := start(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = far.Close() // which no loop can watch then
	a := &s.srv.accepter
	a.conns.Add(1)
	a.pass(&arrival{tcp: far.(*net.TCPConn)})
	eventually(t, "it is counted as refused, and no longer as here", func() bool {
		_, refused := s.srv.Accepted()
		return refused["system"] == 1 && a.count() == 0
	})
}
