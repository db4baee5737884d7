package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// recorder writes down what a stream reads.
type recorder struct{ got []string }

func (r *recorder) event(e *event) {
	s := fmt.Sprintf("event %d lines=%d id=%t/%s", e.name, e.lines, e.hasID, e.id)
	if e.ok {
		s += fmt.Sprintf(" %+v", e.payload)
	}
	if len(e.text) > 0 {
		s += " " + string(e.text)
	}
	r.got = append(r.got, s)
}
func (r *recorder) idOnly(e *event) { r.got = append(r.got, "id "+string(e.id)) }
func (r *recorder) comment()        { r.got = append(r.got, "comment") }

const testHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(text string) string {
	return strconv.FormatInt(int64(len(text)), 16) + "\r\n" + text + "\r\n"
}

// record is an event as the publisher and a right server make it.
func record(partition int32, seq int64) string {
	payload := string(Payload{Partition: partition, Seq: seq, Time: 1}.Append(nil, 0))
	return fmt.Sprintf("id: v1:%d-%d~ab3f9\ndata: %s\n\n", partition, 100+seq, payload)
}

// keyRecord is the event of a record of a key, in partition 0.
func keyRecord(offset, key, seq int64) string {
	p := Payload{Seq: seq, Time: 1, User: key}.Append(nil, 0)
	return fmt.Sprintf("id: v1:0-%d~ab3f9\ndata: %s\n\n", offset, p)
}

func keyDelete(offset, key int64) string {
	return fmt.Sprintf("id: v1:0-%d~ab3f9\nevent: delete\ndata: %d\n\n", offset, key)
}

const liveEvent = "event: live\ndata: {}\n\n"

// readAll feeds input in pieces and returns what was read, and the error.
func readAll(pieces ...string) (s *stream, got []string, err error) {
	r := &recorder{}
	s = &stream{out: r}
	for _, p := range pieces {
		b := []byte(p)
		if err = s.feed(b); err != nil {
			break
		}
		clear(b) // what was kept must have been copied
	}
	return s, r.got, err
}

func TestStream(t *testing.T) {
	const plain = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	one := "event 0 lines=1 id=true/v1:0-107~ab3f9 {Partition:0 Seq:7 Time:1 User:0}"
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"one event", testHead + chunk(record(0, 7)), []string{one}},
		{"two in a chunk", testHead + chunk(record(0, 7)+record(0, 7)), []string{one, one}},
		{"one over three chunks", testHead + chunk(record(0, 7)[:5]) + chunk(record(0, 7)[5:20]) + chunk(record(0, 7)[20:]), []string{one}},
		{"no chunks", plain + record(0, 7), []string{one}},
		{"field names in any case", "HTTP/1.1 200 OK\r\ncontent-TYPE:TEXT/event-stream;charset=utf-8\r\ntransfer-ENCODING: Chunked\r\n\r\n" + chunk(record(0, 7)), []string{one}},
		{"chunk extension", testHead + "0005;a=\"b\"\r\n: a\n\n\r\n", []string{"comment"}},
		{"CRLF", plain + strings.ReplaceAll(record(0, 7), "\n", "\r\n"), []string{one}},
		{"CR", plain + strings.ReplaceAll(record(0, 7), "\n", "\r"), []string{one}},
		{"heartbeat", testHead + chunk(":\n"), []string{"comment"}},
		{"first block", testHead + chunk("retry: 1500\nid: v1:0-4\n\n"), []string{"id v1:0-4"}},
		{"unfinished block", testHead + chunk("id: v1:0-4\ndata: x"), nil},
		{"named", testHead + chunk("event: resync\ndata: {\"reason\":\"unknown\"}\n\n"), []string{`event 2 lines=1 id=false/ {"reason":"unknown"}`}},
		{"name after data", testHead + chunk("data: x\nevent: skipped\n\n"), []string{`event 3 lines=1 id=false/ x`}},
		{"several data lines", testHead + chunk("data: a\ndata:b\ndata\n\n"), []string{`event 0 lines=3 id=false/ ab`}},
		{"wrapped payload", testHead + chunk(`data: {"pub":{"data":{"p":2,"seq":5,"ts":9}}}`+"\n\n"), []string{"event 0 lines=1 id=false/ {Partition:2 Seq:5 Time:9 User:0}"}},
		{"blank lines", testHead + chunk("\n\n\n"), nil},
		{"unknown field", testHead + chunk("foo: bar\nfoo\n\n"), nil},
		{"last chunk", testHead + chunk(":a\n") + "0\r\n\r\n", []string{"comment"}},
		{"trailer", testHead + chunk(":a\n") + "0\r\nX: y\r\n\r\n", []string{"comment"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check := func(what string, pieces ...string) {
				if _, got, err := readAll(pieces...); err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("%s:\n got %q, %v\nwant %q", what, got, err, tt.want)
				}
			}
			check("whole", tt.in)
			check("byte by byte", strings.Split(tt.in, "")...)
			for i := range tt.in {
				check("split at "+strconv.Itoa(i), tt.in[:i], tt.in[i:])
			}
		})
	}
}

func TestStreamFaults(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no HTTP", "hello, I am no server\r\n\r\n", "no HTTP/1 response"},
		{"no status", "HTTP/1.1 abc Bad\r\n\r\n", "no HTTP/1 response"},
		{"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer coding"},
		{"endless head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", headBytesMax), "response head over"},
		{"no chunk size", testHead + "\r\n", "in a chunk size"},
		{"odd chunk size", testHead + "0x5\r\n", "in a chunk size"},
		{"huge chunk size", testHead + "1000000000000000\r\n", "15 digits"},
		{"bare CR after size", testHead + "5\rx", "after a chunk size"},
		{"chunk too long", testHead + "2\r\n:ab\n", "after chunk data"},
		{"CR without LF after data", testHead + "2\r\n:\n\rX", "after chunk data"},
		{"after the end", testHead + "0\r\n\r\nx", "after the last chunk"},
		{"endless line", testHead + "fffffff\r\n" + strings.Repeat("x", lineBytesMax+1), "a line over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := readAll(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("whole: got error %v, want %q", err, tt.want)
			}
			half := len(tt.in) - 1
			if _, _, err := readAll(tt.in[:half], tt.in[half:]); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("split before the last byte: got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestStreamState(t *testing.T) {
	in := testHead + chunk("retry: 1500\nid: v1:0-4\n\n") + chunk("id: v1:0-5\ndata: x\n\n") + chunk("id: v1:0-6\ndata: half")
	s, _, err := readAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if s.status != 200 || !s.sse || s.retry != 1500*time.Millisecond {
		t.Errorf("got status %d, event stream %t, retry %v; want 200, true, 1.5s", s.status, s.sse, s.retry)
	}
	if got := string(s.lastID); got != "v1:0-5" {
		t.Errorf("last id %q, want that of the last whole block, v1:0-5", got)
	}
	s.reset()
	if s.phase != inHead || string(s.lastID) != "v1:0-5" || s.retry != 1500*time.Millisecond {
		t.Errorf("after reset: phase %d, last id %q, retry %v", s.phase, s.lastID, s.retry)
	}
	if err := s.feed([]byte(testHead + chunk("data: y\n\n") + "0\r\n\r\n")); err != nil || s.phase != ended {
		t.Errorf("second response: phase %d, error %v; want the end", s.phase, err)
	}
	if got := s.out.(*recorder).got; got[len(got)-1] != "event 0 lines=1 id=false/ y" {
		t.Errorf("the half block of the first connection got into the second: %q", got)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(testHead+chunk("retry: 10\nid: v1:0-1\n\n")+chunk(record(0, 0))+"0\r\n\r\n"), 7)
	f.Add([]byte(testHead+chunk("data: a\r\rdata: b\n\n:\r\n")), 90)
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nevent: skipped\ndata: {\"partition\":0}\n\n"), 20)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		_, want, wantErr := readAll(string(in))
		if at < 0 || at > len(in) {
			return
		}
		_, got, err := readAll(string(in[:at]), string(in[at:]))
		if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("split at %d: got %q, %v; whole: %q, %v", at, got, err, want, wantErr)
		}
	})
}
