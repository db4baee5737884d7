package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// builds are the binaries of this test process.
var builds struct {
	mu   sync.Mutex
	dir  string            // made by Main
	path map[string]string // by package
}

// Main runs a package's tests and removes what Build has built for them. A
// package that uses Build or Tailcast has
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M) {
	dir, err := os.MkdirTemp("", "tailcast-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builds.dir, builds.path = dir, map[string]string{}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Build builds a command of this module, once for all tests of the package,
// and returns the binary's path. Under the race detector the binary has it
// too.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if builds.dir == "" {
		t.Fatal("TestMain does not call testkit.Main")
	}
	if built, ok := builds.path[pkg]; ok {
		return built
	}
	noteSources(t, pkg)
	built := filepath.Join(builds.dir, path.Base(pkg))
	args := []string{"build", "-o", built}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	builds.path[pkg] = built
	return built
}

// noteSources reads the folders of everything pkg is made of. The go command
// knows nothing of a binary that a test builds; what it does see is which
// folders the test has read, and so it doesn't take a cached result for one of
// other sources.
func noteSources(t testing.TB, pkg string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", pkg).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	for dir := range strings.FieldsSeq(string(out)) {
		if _, err := os.ReadDir(dir); err != nil {
			t.Fatal(err)
		}
	}
}
