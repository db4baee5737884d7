package route

import (
	"strings"
	"testing"
)

func TestAllow(t *testing.T) {
	for _, tc := range []struct {
		list, topic string
		want        bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a", "A", false},
		{"a b c", "b", true},
		{"tenant-*", "tenant-1", true},
		{"tenant-*", "tenant-", true},
		{"tenant-*", "tenant", false},
		{"tenant-*", "x-tenant-1", false},
		{"*", "a", true},
		{"*", "__consumer_offsets", false},
		{"*", "_schemas", false},
		{"_s*", "_schemas", true},
		{"__consumer_offsets", "__consumer_offsets", true},
		{".*", ".a", true},
		{"", "a", false},
	} {
		a, err := NewAllow(strings.Fields(tc.list))
		if err != nil {
			t.Fatalf("%s: %v", tc.list, err)
		}
		if got := a.Allows(tc.topic); got != tc.want {
			t.Errorf("%q allows %s: %v", tc.list, tc.topic, got)
		}
	}
	for _, tc := range []struct{ text, want string }{
		{"", ": it is empty"},
		{"a*b", "a*b: a * may only stand at the end"},
		{"a**", "a**: a * may only stand at the end"},
		{"*a", "*a: a * may only stand at the end"},
		{"a b", "a b: only letters, digits, dot, underscore and dash may be in it"},
		{"a b*", "a b*: only letters, digits, dot, underscore and dash may be in it"},
		{"a\n", `"a\n": only letters, digits, dot, underscore and dash may be in it`},
		{"..", "..: it is a name that Kafka keeps"},
		{strings.Repeat("a", 250), "it is longer than 249 bytes"},
	} {
		if _, err := NewAllow([]string{tc.text}); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}

func TestCheckTopicTemplate(t *testing.T) {
	for _, tc := range []struct{ text, want string }{ // want: part of the error; empty: taken
		{"events", ""},
		{"a.b_c-D9", ""},
		{"...", ""},
		{strings.Repeat("x", 249), ""},
		{"{t}", ""},
		{"tenant-{tenant}.${claims.region}", ""},
		{strings.Repeat("x", 248) + "{t}", ""},
		{strings.Repeat("x", 249) + "{t}", "longer than 249 bytes"},
		{strings.Repeat("x", 250), "longer than 249 bytes"},
		{"", "it is empty"},
		{".", "it is a name that Kafka keeps"},
		{".{x}", ""},
		{"a b", "only letters, digits"},
		{"a b{x}", "only letters, digits"},
		{"a,b", "only letters, digits"},
		{"{{x}}", "only letters, digits"},
		{"{x", "a { without }"},
		{"${x}", "not followed by claims.NAME}"},
	} {
		err := CheckTopicTemplate(tc.text)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
}

func TestParseHost(t *testing.T) {
	for _, tc := range []struct{ text, want, bad string }{
		{text: "a.test", want: "a.test"},
		{text: "A.Test.", want: "a.test"},
		{text: "localhost", want: "localhost"},
		{text: "127.0.0.1", want: "127.0.0.1"},
		{text: "xn--bcher-kva.test", want: "xn--bcher-kva.test"},
		{text: "[::1]", want: "[::1]"},
		{text: "[2001:DB8::1]", want: "[2001:db8::1]"},
		{text: "", bad: "it is empty"},
		{text: ".", bad: "it is empty"},
		{text: "a.test:80", bad: "without its port"},
		{text: "::1", bad: "stands in brackets"},
		{text: "[::1]:80", bad: "without its port"},
		{text: "[a.test]", bad: "not an IPv6 address"},
		{text: "[fe80::1%25eth0]", bad: "not an IPv6 address"},
		{text: "*.test", bad: "without wildcards"},
		{text: "a..test", bad: "not the name of one"},
		{text: "https://a.test", bad: "without its port"},
		{text: "a/b", bad: "not the name of one"},
		{text: "bücher.test", bad: "punycode"},
		{text: "a.test..", bad: "not the name of one"},
		{text: strings.Repeat("a", 254), bad: "longer than"},
	} {
		got, err := ParseHost(tc.text)
		if got != tc.want || (err == nil) != (tc.bad == "") || err != nil && !strings.Contains(err.Error(), tc.bad) {
			t.Errorf("%q: %q, %v, want %q %q", tc.text, got, err, tc.want, tc.bad)
		}
	}
}
