package hostile

import (
	"context"
	"encoding/hex"
	"io"
	"strings"
)

// fromTheBeginning asks for every record there is.
const fromTheBeginning = "Last-Event-ID: v1:\r\n"

var onStreams = []Attack{
	{Name: "streams cut off", Unit: "streams", once: begins(get + "\r\n")},
	{Name: "streams not read", Unit: "streams", Holds: true, once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		if err = c.SetReadBuffer(4096); err == nil {
			_, err = io.WriteString(c, get+fromTheBeginning+"\r\n")
		}
		if err == nil {
			<-ctx.Done()
		}
		return 1, err
	}},
	{Name: "bytes behind a stream", Unit: "streams", once: says(get + "\r\n" + strings.Repeat("x", 128<<10))},
	{Name: "deep ids", Unit: "streams", once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.open(ctx, get+fromTheBeginning+"\r\n")
		if err != nil {
			return 0, err
		}
		defer cut(c)
		_, err = io.CopyBuffer(writeOnly{io.Discard}, io.LimitReader(c, 256<<10), a.buf)
		return 1, err
	}},
	{Name: "wild ids", Unit: "streams", once: begins("GET " + EventsPath + "?lastEventId=v1:" + strings.Repeat("0-1.", 2000) +
		" HTTP/1.1\r\nHost: a\r\nLast-Event-ID: v1:0-9223372036854775806\r\n\r\n")},
	{Name: "wild queries", Unit: "streams", once: begins("GET " + EventsPath + "?" + strings.Repeat("%61=%62&", 1400) + "since=%31 HTTP/1.1\r\nHost: a\r\n\r\n")},
	{Name: "filters, each another", Unit: "streams", once: func(ctx context.Context, a *attacker) (int, error) {
		return begins("GET /users/"+a.word()+" HTTP/1.1\r\nHost: a\r\n\r\n")(ctx, a)
	}},
	{Name: "topics that aren't", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string { return "GET /topics/" + a.word() + " HTTP/1.1\r\nHost: a\r\n\r\n" })
	}},
}

// word makes up a word.
func (a *attacker) word() string {
	var b [8]byte
	_, _ = a.rand.Read(b[:]) // it can't fail
	return hex.EncodeToString(b[:])
}

// writeOnly keeps io.CopyBuffer from going around the buffer.
type writeOnly struct{ io.Writer }
