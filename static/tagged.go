package static

import (
	"fmt"
	"io/fs"
	"net/http"
	"time"
)

// tagged is visible for one answer: when a file is opened, its ETag goes into
// the answer's header, where net/http looks for it.
type tagged struct {
	visible
	header http.Header
}

// Open implements fs.FS.
func (t tagged) Open(name string) (fs.File, error) {
	f, err := t.visible.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		t.header.Set("Etag", etag(info.ModTime(), info.Size(), time.Now()))
	}
	return f, nil
}

// etag is made of a file's size and its time of change in seconds, as nginx does
// it, so that nodes with copies of a directory agree. It is weak, and no good for
// parts (RFC 9110 8.8.1), while the file may change again within that second.
func etag(changed time.Time, size int64, now time.Time) string {
	weak := ""
	if now.Sub(changed) < 2*time.Second {
		weak = "W/"
	}
	return fmt.Sprintf(`%s"%x-%x"`, weak, changed.Unix(), size)
}
