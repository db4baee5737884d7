package config

import (
	"strings"
	"testing"
	"time"
)

// FuzzSize: what is taken is written back as the same number.
func FuzzSize(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseSize(text)
		if err != nil {
			checkLine(t, err)
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d", text, n)
		}
		if again, err := parseSize(n.String()); err != nil || again != n {
			t.Fatalf("%q is %d, written %q, read %d, %v", text, n, n, again, err)
		}
	})
}

// FuzzRoute: what is taken is a path that a request can hold and a topic that
// Kafka can, and is the text again when joined.
func FuzzRoute(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRoute(text)
		if err != nil {
			checkLine(t, err)
			return
		}
		if len(r.Topics) != 1 || r.Path+"="+r.Topics[0] != text {
			t.Fatalf("%q is %q to %q", text, r.Path, r.Topics)
		}
		if r.Path[0] != '/' || strings.ContainsAny(r.Path, "?#%*\x00\r\n\t\x7f") || strings.Contains(r.Path+"/", "/../") || strings.Contains(r.Path+"/", "/./") {
			t.Fatalf("%q is a path", r.Path)
		}
		if strings.Trim(r.Topics[0], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || len(r.Topics[0]) > 249 {
			t.Fatalf("%q is a topic", r.Topics[0])
		}
	})
}

// FuzzFile: any file is a configuration or an error of one line that begins
// with the file's name.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 {
			return // the parser's time grows with the square
		}
		l := newLoader(Serve)
		assignments, routes, err := l.parseFile("tailcast.yaml", text)
		for i := 0; err == nil && i < len(assignments); i++ {
			err = l.apply(assignments[i])
		}
		if err == nil {
			err = l.joinRoutes(routes)
		}
		if err != nil {
			checkLine(t, err)
			if !strings.HasPrefix(err.Error(), "tailcast.yaml:") {
				t.Fatalf("names no place: %q", err)
			}
			return
		}
		for _, r := range l.config.Routes {
			if r.Path == "" || len(r.Topics) == 0 || r.Start.From == "" || r.Format.Binary == "" || r.Format.Delete == "" {
				t.Fatalf("half a route: %+v", r)
			}
		}
	})
}

// FuzzLoad: any arguments and variables are a configuration within its bounds or
// an error of one line.
func FuzzLoad(f *testing.F) {
	f.Fuzz(func(t *testing.T, args, env string) {
		if strings.Contains(args+env, "onfig") || strings.Contains(strings.ToUpper(env), "CONFIG") {
			return // it would open files
		}
		c, err := Load(Serve, strings.Split(args, " "), strings.Split(env, " "))
		if err != nil {
			checkLine(t, err)
			return
		}
		if len(c.Routes) == 0 || c.Heartbeat < time.Second || c.Retry < time.Second || c.MaxEvent > c.LogBytes || c.MaxLag <= 0 {
			t.Fatalf("%q %q: %+v", args, env, *c)
		}
	})
}
