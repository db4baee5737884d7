package http1

import "testing"

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		lines      []string
		gzip, zstd bool
	}{
		{nil, false, false},
		{[]string{"Accept-Encoding:"}, false, false},
		{[]string{"Accept-Encoding: gzip"}, true, false},
		{[]string{"Accept-Encoding: gzip, deflate, br, zstd"}, true, true},
		{[]string{"Accept-Encoding: gzip", "Accept-Encoding: zstd"}, true, true},
		{[]string{"X: y", "accept-encoding: identity", "Accept-Encoding:zstd"}, false, true},
		{[]string{"Accept-Encoding: GZIP ; q=0.001"}, true, false},
		{[]string{"Accept-Encoding: gzip\t;\tQ=1.000 ,zstd;q=0.5"}, true, true},
		{[]string{"Accept-Encoding: x-gzip, X-Zstd"}, true, true},
		{[]string{"Accept-Encoding: gzip;q=0"}, false, false},
		{[]string{"Accept-Encoding: gzip;q=0.000, zstd;q=0."}, false, false},
		{[]string{"Accept-Encoding: *"}, true, true},
		{[]string{"Accept-Encoding: *;q=0.1"}, true, true},
		{[]string{"Accept-Encoding: identity;q=0, *;q=0"}, false, false},
		{[]string{"Accept-Encoding: gzip;q=0, *"}, false, true},
		{[]string{"Accept-Encoding: *;q=0, gzip"}, true, false},
		{[]string{"Accept-Encoding: *", "Accept-Encoding: zstd;q=0"}, true, false},
		{[]string{"Accept-Encoding: gzipped, gzi, xgzip, x-"}, false, false},
		{[]string{"Accept-Encoding: gzip;q=2, zstd;q=x"}, false, false},
		{[]string{"Accept-Encoding: gzip;q, zstd;q="}, false, false},
		{[]string{"Accept-Encoding: gzip;q=0.0001, zstd;x=1"}, false, false},
		{[]string{"Accept-Encoding: gzip;q=-1, zstd;q=0x1"}, false, false},
		{[]string{"Accept-Encoding: ,, gzip ,;q=1,"}, true, false},
	} {
		r := mustParse(t, get(c.lines...))
		if gzip, zstd := r.Accepts("gzip"), r.Accepts("zstd"); gzip != c.gzip || zstd != c.zstd {
			t.Errorf("%q: gzip %t, zstd %t", c.lines, gzip, zstd)
		}
	}
}
