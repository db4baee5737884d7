package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// value puts texts into one field of a Config.
type value struct {
	arg    string // what stands for the value in help: SIZE, HOST:PORT; "" for a switch
	list   bool
	bounds string // "1s to 1h"; "" without any
	clear  func()
	add    func(text string) error
}

// single is a setting of one value; the last text wins.
func single[T any](dst *T, arg string, parse func(string) (T, error)) value {
	return value{
		arg:   arg,
		clear: func() {},
		add: func(text string) error {
			v, err := parse(text)
			if err == nil {
				*dst = v
			}
			return err
		},
	}
}

// list is a setting of many values, each parsed by itself.
func list[T any](dst *[]T, arg string, parse func(string) (T, error)) value {
	return value{
		arg:   arg,
		list:  true,
		clear: func() { *dst = nil },
		add: func(text string) error {
			v, err := parse(text)
			if err == nil {
				*dst = append(*dst, v)
			}
			return err
		},
	}
}

// toggle is a setting that is on or off.
func toggle(dst *bool) value { return single(dst, "", parseBool) }

// bound is the range of a number and why it ends there.
type bound[T cmp.Ordered] struct {
	min, max T
	zero     bool // 0 is allowed too, with a meaning of its own
	why      string
}

// within is single with a bound.
func within[T cmp.Ordered](dst *T, arg string, parse func(string) (T, error), b bound[T]) value {
	var zero T
	bounds := show(b.min) + " to " + show(b.max)
	if b.zero {
		bounds = "0, or " + bounds
	}
	v := single(dst, arg, func(text string) (T, error) {
		n, err := parse(text)
		inside := n >= b.min && n <= b.max || b.zero && n == zero
		if err == nil && !inside {
			err = fmt.Errorf("%s is outside %s: %s", quote(text), bounds, b.why)
		}
		return n, err
	})
	v.bounds = bounds
	return v
}

// show writes a number as an operator would.
func show(v any) string {
	s := fmt.Sprint(v)
	if _, ok := v.(time.Duration); ok {
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
	}
	return s
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s is not true or false", quote(text))
}

func parseInt(text string) (int, error) {
	n, err := parseDigits(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is more than can be counted", quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a whole number", quote(text))
	}
	return int(n), nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is not a duration (use 500ms, 20s, 5m)", quote(text))
	}
	return d, nil
}

// parseText takes any text of one line; names and files, nothing that needs
// more room.
func parseText(text string) (string, error) {
	const most = 4096 // PATH_MAX
	switch {
	case len(text) > most:
		return "", fmt.Errorf("%s is longer than %d bytes", quote(text), most)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%s holds bytes that are no text", quote(text))
	}
	return text, nil
}

// parseGroup takes the name of a consumer group, which may hold {node}.
func parseGroup(text string) (string, error) {
	const most = 255 // as topics, so that brokers' records of it stay small
	if len(text) > most {
		return "", fmt.Errorf("%s is longer than %d bytes", quote(text), most)
	}
	if strings.ContainsAny(strings.ReplaceAll(text, NodeParam, ""), "{}") {
		return "", fmt.Errorf("%s holds a brace that is not of %s", quote(text), NodeParam)
	}
	return parseText(text)
}

// parseListen reads the address of a listener. The host may be empty: every
// address of the machine.
func parseListen(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || !isPort(port) || host != "" && !isHost(host) {
		return "", fmt.Errorf("%s is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)", quote(text))
	}
	return text, nil
}

// parseListenOrOff is parseListen for a listener that may be left out.
func parseListenOrOff(text string) (string, error) {
	if text == "off" {
		return "", nil
	}
	return parseListen(text)
}

// parseNetwork reads a network, or one address.
func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() || p != p.Masked() {
		return p, fmt.Errorf("%s is not a network (use 10.0.0.0/8, 2001:db8::/32, 192.0.2.7)", quote(text))
	}
	return p, nil
}

// parseBroker reads the address of a broker. Without a port it is Kafka's.
func parseBroker(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil && isHost(text) && !strings.Contains(text, ":") {
		return text + ":9092", nil
	}
	if err != nil || !isPort(port) || port == "0" || !isHost(host) {
		return "", fmt.Errorf("%s is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)", quote(text))
	}
	return text, nil
}

func isPort(port string) bool {
	n, err := parseDigits(port)
	return err == nil && n <= 65535 && (n == 0 || port[0] != '0') && len(port) <= 5
}

// isHost reports whether host can be a name or an address. Whether it is one,
// the resolver knows. Only an IPv6 address has a percent sign, before its zone.
func isHost(host string) bool {
	if address, _, zoned := strings.Cut(host, "%"); zoned && !strings.Contains(address, ":") {
		return false
	}
	for _, c := range []byte(host) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._:%", c) >= 0:
		default:
			return false
		}
	}
	return host != "" && len(host) <= 255
}

// choice is a setting of one of a few words.
func choice[T ~string](dst *T, words ...T) value {
	return single(dst, join(words, "|"), oneOf(words...))
}

// oneOf takes one of the words given.
func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		return "", fmt.Errorf("%s is not one of %s", quote(text), join(words, ", "))
	}
}

func join[T ~string](words []T, sep string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(w))
	}
	return b.String()
}

var logLevels = []string{"debug", "info", "warn", "error"}

func parseLevel(text string) (slog.Level, error) {
	word, err := oneOf(logLevels...)(text)
	if err != nil {
		return 0, err
	}
	var level slog.Level
	return level, level.UnmarshalText([]byte(word))
}

// quote is %q on one line of bounded length: texts come from anywhere.
func quote(text string) string {
	const most = 80 // enough to recognise it
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
