package bench

import (
	"encoding/base64"
	"testing"
)

func TestReadID(t *testing.T) {
	for _, tt := range []struct {
		id        string
		partition int32
		offset    int64
		ok        bool
	}{
		{"v1:0-5812.1-5790.2-5833~ab3f9", 1, 5790, true},
		{"v1:0-5812.1-5790.2-5833", 2, 5833, true},
		{"v1:", 0, noOffset, true},
		{"v1:~ab", 0, noOffset, true},
		{"v1:0-1.7-2~ab3f9", 3, noOffset, true},
		{"v1:0-*.1-2~ab3f9", 0, noOffset, true},
		{"v1:0-0~_-3f9", 0, 0, true},
		{"v1:0-9223372036854775806~ab3f9", 0, 9223372036854775806, true},
		{"v1:0-1~ab3f9,0-7~cd3f9", 0, noOffset, true},
		{"", 0, noOffset, false},
		{"v2.", 0, noOffset, false},
		{"v2.AQA", 0, noOffset, false},
		{"v2.AQAC", 0, noOffset, false},
		{"v2.a+bc", 0, noOffset, false},
		{"v3:0-1", 0, noOffset, false},
		{"5812", 0, noOffset, false},
		{"v1:0", 0, noOffset, false},
		{"v1:0-", 0, noOffset, false},
		{"v1:0-1.", 0, noOffset, false},
		{"v1:.0-1", 0, noOffset, false},
		{"v1:0-1 ", 0, noOffset, false},
		{"v1:0-+1", 0, noOffset, false},
		{"v1:00-1", 0, noOffset, false},
		{"v1:0-01", 0, noOffset, false},
		{"v1:1-1.0-1", 0, noOffset, false},
		{"v1:0-1.0-1", 0, noOffset, false},
		{"v1:0-9223372036854775808", 0, noOffset, false},
		{"v1:0-1~", 0, noOffset, false},
		{"v1:0-1~abc", 0, noOffset, false},
		{"v1:0-1~ab3f!", 0, noOffset, false},
		{"v1:0-1~ab3f9,x", 0, noOffset, false},
	} {
		offset, ok := readID([]byte(tt.id), tt.partition)
		if offset != tt.offset || ok != tt.ok {
			t.Errorf("%q, partition %d: got %d, %t; want %d, %t", tt.id, tt.partition, offset, ok, tt.offset, tt.ok)
		}
	}
}

// TestReadPackedID reads ids made by hand.
func TestReadPackedID(t *testing.T) {
	pack := func(b ...byte) string { return "v2." + base64.RawURLEncoding.EncodeToString(b) }
	two := []byte{1, 3, 9, 9, 9, 9, 2, 0, 0xAC, 2, 4, 1} // partition 0: next 300; partition 5: next 1
	for _, tt := range []struct {
		name, id  string
		partition int32
		offset    int64
		ok        bool
	}{
		{"first pair", pack(two...), 0, 299, true},
		{"second pair", pack(two...), 5, 0, true},
		{"absent partition", pack(two...), 4, noOffset, true},
		{"no tag", pack(1, 0, 1, 0, 8), 0, 7, true},
		{"name tag", pack(1, 1, 9, 9, 1, 0, 8), 0, 7, true},
		{"no pairs", pack(1, 0, 0), 0, noOffset, true},
		{"unknown position", pack(1, 0, 1, 0, 0), 0, noOffset, true},
		{"two groups", pack(2, 0, 1, 0, 8, 0, 1, 0, 9), 0, noOffset, true},
		{"no group", pack(0), 0, noOffset, false},
		{"other flags", pack(1, 2, 1, 0, 8), 0, noOffset, false},
		{"pair missing", pack(1, 0, 2, 0, 8), 0, noOffset, false},
		{"number cut off", pack(1, 0, 1, 0, 0x80), 0, noOffset, false},
		{"number too long", pack(1, 0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1), 0, noOffset, false},
		{"not the shortest form", pack(1, 0, 1, 0, 0x88, 0), 0, noOffset, false},
		{"bytes behind", pack(1, 0, 1, 0, 8, 0), 0, noOffset, false},
		{"bits behind", pack(1, 0, 0, 8)[:8], 0, noOffset, false},
		{"huge count", pack(1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F), 0, noOffset, false},
	} {
		offset, ok := readID([]byte(tt.id), tt.partition)
		if offset != tt.offset || ok != tt.ok {
			t.Errorf("%s: %s: got %d, %t; want %d, %t", tt.name, tt.id, offset, ok, tt.offset, tt.ok)
		}
	}
}
