package bench

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReadProc(t *testing.T) {
	before, err := ReadProc(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Not the Go heap, which the race detector shadows.
	held, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(held)
	for end := before.CPU + 50*time.Millisecond; ; {
		after, err := ReadProc(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after.CPU < end {
			continue // reading is what uses the time
		}
		if grown := after.RSS - before.RSS; grown < 60<<20 || grown > 80<<20 || after.Threads < 1 || after.FDs < 3 {
			t.Errorf("%+v, before 64 MiB more %+v", after, before)
		}
		break
	}
	if _, err := ReadProc(1 << 30); err == nil {
		t.Error("no error for a process that does not exist")
	}
}
