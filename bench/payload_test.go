package bench

import (
	"testing"
)

func TestPayload(t *testing.T) {
	for _, tt := range []struct {
		p     Payload
		least string
	}{
		{Payload{3, 41, 1790000000000000000, 0}, `{"p":3,"seq":41,"ts":1790000000000000000,"pad":""}`},
		{Payload{3, 41, 1790000000000000000, 17}, `{"p":3,"seq":41,"ts":1790000000000000000,"u":17,"pad":""}`},
	} {
		for _, size := range []int{0, 60, 200, 5000} {
			b := tt.p.Append(nil, size)
			if got, ok := parsePayload(b); !ok || got != tt.p {
				t.Errorf("size %d: %s reads as %+v, %t", size, b, got, ok)
			}
			if len(b) != max(size, len(tt.least)) {
				t.Errorf("size %d: got %d bytes", size, len(b))
			}
		}
	}
	for _, bad := range []string{"", "{}", `{"p":}`, `{"p":1}`, `{"p":1,"seq":,"ts":1}`, `{"p":1,"seq":2,"ts":}`, `{"p":4294967296,"seq":2,"ts":3}`, `{"p":1,"seq":9223372036854775808,"ts":3}`, `{"p":-1,"seq":2,"ts":3}`, `{"p":1,"seq":2,"ts":3,"u":x}`} {
		if got, ok := parsePayload([]byte(bad)); ok {
			t.Errorf("%s reads as %+v", bad, got)
		}
	}
}
