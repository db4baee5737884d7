package loop

import (
	"fmt"
	"io"
	"testing"
	"time"

	"tailcast/hub"
)

func TestStreamLive(t *testing.T) {
	s := start(t, nil)
	s.open(2)
	c := s.get("/events")
	c.expect("retry: ")
	s.produce(0, "one", "two\nlines")
	s.produce(1, "three")
	c.expect("id: v1:0-0~", "data: two\ndata: lines\n\n", "id: v1:0-1.1-0~")
}

func TestStreamResumesFromMemory(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	for i := range 10 {
		s.produce(0, fmt.Sprint("v", i))
	}
	c := s.get("/events", "Last-Event-ID: v1:0-6")
	c.expect("id: v1:0-6~", "data: v7", "data: v8", "data: v9")
	s.produce(0, "v10")
	c.expect("data: v10")
}

func TestStreamWaitsForItsFeed(t *testing.T) {
	s := start(t, func(_ *Config, o *hub.Options) { o.Heartbeat = time.Second })
	c := s.get("/events")
	c.expect("retry: ", ":\n")
	s.open(1)
	c.expect("id: v1:~")
	s.produce(0, "first")
	c.expect("data: first")
}

func TestStreamEndsCleanly(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	c := s.get("/events")
	c.expect("retry: ")
	s.srv.loops[0].order(orderDrain)
	c.expect("retry: ")
	if _, err := c.block(); err != io.EOF {
		t.Fatalf("got %v, want the last chunk", err)
	}
	if n, err := c.r.ReadByte(); err != io.EOF {
		t.Fatalf("got %q, %v behind the last chunk", n, err)
	}
}
