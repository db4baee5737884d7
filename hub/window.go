package hub

import "time"

// window puts off the marks of a feed, so that records which come one by one
// are served by one pass: a pass costs a system call a stream, however few
// events it writes. Readers see what was appended at once; only their wake
// waits. The feed's mutex must be held.
type window struct {
	open  bool
	timer *time.Timer // ends it; nil before the first
	told  int64       // the log's end at the last mark
}

// markSoon marks when FlushWindow has passed since the first frame behind the
// last mark; earlier if they are a segment, or a window of a fast feed would
// roll the log over its streams. mu must be held.
func (f *Feed) markSoon(round *Wakes) {
	w := &f.window
	switch wait := f.hub.opts.FlushWindow; {
	case wait == 0 || f.log.end-w.told >= segmentBytes:
		f.mark(round)
	case w.open:
	case w.timer == nil:
		w.open, w.timer = true, time.AfterFunc(wait, f.windowOver)
	default:
		w.open = true
		w.timer.Reset(wait)
	}
}

// windowOver is called by the window's timer. One that ran out while a mark
// was made may end the next window early.
func (f *Feed) windowOver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.window.open && !f.ended {
		f.mark(nil)
	}
}

// closed notes that the feed is being marked.
func (w *window) closed(end int64) {
	if w.open {
		w.timer.Stop()
	}
	w.open, w.told = false, end
}
