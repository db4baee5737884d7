// Package share says how a gateway's processors are shared out between its event
// loops and what computes beside them.
package share

import (
	"os"
	"runtime"
)

// spare is how many processors Go has more than there are loops. A loop that
// waits in epoll_wait keeps its processor, as in any system call, until the
// runtime's monitor takes it away, which on a quiet node looks every 10 ms: as
// long as a record from the broker would lie unread. And when it is taken away,
// a loop that has something to do again finds none while others compute on all
// of them: one for the records, one for accepting, and one for those that Aside is
// for. A goroutine that has given way keeps its own until it has had its turn, so
// with one less a record waits for it; one more only makes the runtime look for
// work in vain.
const spare = 3

// processors is how many Go had when the process began.
var processors = runtime.GOMAXPROCS(0)

// Reserve gives Go as many processors as the loops need. GOMAXPROCS in the
// environment is left as it is.
func Reserve(loops int) {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < loops+spare {
		runtime.GOMAXPROCS(loops + spare)
	}
}

// Aside is how many goroutines may compute at a time for one kind of work that
// strangers ask for beside the streams (handshakes, tokens, files): half of the
// processors, so that a flood of it leaves the loops the other half.
func Aside() int { return aside(processors) }

func aside(processors int) int { return max(1, processors/2) }

// GiveWay lets other threads have the processor that want it: who computes aside
// calls it behind each piece of work. It costs nothing to speak of when nobody
// does. When loops do, a thread that never gave way would have its processor for
// as long as the kernel's tick is, 4 ms mostly, and as much of it as a loop; one
// that gives way gets what is left, and a little more (docs/adr/0010).
func GiveWay() { yield() }
