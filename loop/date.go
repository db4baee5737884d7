package loop

import "time"

// date is the value of the Date field, rendered once a second.
type date struct {
	second int64
	text   []byte
}

// now returns the date, by the machine's clock; valid until the next call.
func (d *date) now() []byte {
	now := time.Now()
	if s := now.Unix(); s != d.second || d.text == nil {
		d.second = s
		d.text = now.UTC().AppendFormat(d.text[:0], "Mon, 02 Jan 2006 15:04:05 GMT")
	}
	return d.text
}
