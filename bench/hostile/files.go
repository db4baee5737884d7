package hostile

import (
	"context"
	"strings"
)

const getFile = "GET /page.html HTTP/1.1\r\nHost: a\r\n"

var onFiles = []Attack{
	{Name: "files", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string { return getFile + "\r\n" })
	}},
	{Name: "file ranges", Unit: "requests", once: says(getFile + "Connection: close\r\nRange: bytes=0-0" + strings.Repeat(",0-0", 2000) + "\r\n\r\n")},
	{Name: "paths out of the files", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string { return "GET /.//..%2f..%5c" + a.word() + " HTTP/1.1\r\nHost: a\r\n\r\n" })
	}},
	// Each second request takes the connection from a loop, each other one back.
	{Name: "files and routes in turn", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(i int) string {
			if i%2 == 0 {
				return getFile + "\r\n"
			}
			return preflight
		})
	}},
}
