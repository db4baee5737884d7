package tailcast

import (
	"go/build"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms is the map of docs/ARCHITECTURE.md: what each room may import besides
// the standard library, and what of that it must not.
var rooms = map[string]struct {
	may []string // prefixes
	not []string // of the standard library
}{
	"http1":              {not: []string{"net", "net/http", "os", "time", "syscall"}},
	"frame":              {may: []string{"tailcast/internal/jsonfield"}, not: []string{"net", "os", "time", "syscall"}},
	"internal/jsonfield": {not: []string{"net", "os", "time"}},
	"route":              {not: []string{"net", "net/http", "os", "syscall"}}, // time is for reading RFC 3339
	"hub":                {may: []string{"tailcast/frame", "tailcast/internal/jsonfield", "tailcast/internal/wait"}, not: []string{"net", "net/http", "os", "syscall"}},
	"loop": {
		may: []string{
			"tailcast/http1", "tailcast/route", "tailcast/hub", "tailcast/frame", "tailcast/auth", "tailcast/internal/share",
			"github.com/panjf2000/gnet/v2", "github.com/pires/go-proxyproto", "github.com/valyala/bytebufferpool", "golang.org/x/sys/unix",
		},
		not: []string{"net/http"},
	},
	"auth":            {may: []string{"tailcast/http1", "tailcast/internal/share", "tailcast/internal/wait", "github.com/golang-jwt/jwt/v5", "github.com/MicahParks/"}},
	"static":          {may: []string{"tailcast/internal/share"}},
	"internal/share":  {may: []string{"golang.org/x/sys/unix"}},
	"internal/wait":   {not: []string{"net", "os"}},
	"certs":           {may: []string{"tailcast/internal/wait"}, not: []string{"net", "net/http"}},
	"kafkatail":       {may: []string{"tailcast/hub", "tailcast/frame", "tailcast/internal/wait", "github.com/twmb/franz-go"}, not: []string{"net/http"}},
	"config":          {may: []string{"tailcast/route", "tailcast/frame", "tailcast/auth", "github.com/goccy/go-yaml", "github.com/spf13/pflag"}, not: []string{"net/http"}},
	"admin":           {may: []string{"tailcast/web", "github.com/prometheus/client_golang"}},
	"web":             {},
	"bench":           {may: []string{"golang.org/x/sys/unix"}, not: []string{"net/http"}},
	"bench/harness":   {may: []string{"tailcast/bench", "tailcast/internal/wait", "golang.org/x/sys/unix"}},
	"bench/hostile":   {may: []string{"tailcast/internal/wait", "golang.org/x/sys/unix"}},
	"bench/report":    {may: []string{"tailcast/bench"}},
	"bench/kafkaload": {may: []string{"tailcast/bench", "github.com/twmb/franz-go"}},
	"cmd/tailcast":    {may: []string{"tailcast/", "github.com/twmb/franz-go", "github.com/spf13/pflag"}},
}

// TestRooms keeps the map true: gnet is met in loop alone, franz-go in
// kafkatail (and the demo's broker in cmd), and nothing that turns bytes into
// bytes opens a socket or reads a clock.
func TestRooms(t *testing.T) {
	for room, rule := range rooms {
		t.Run(room, func(t *testing.T) {
			pkg, err := build.ImportDir(filepath.FromSlash(room), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, imp := range pkg.Imports {
				switch {
				case slices.Contains(rule.not, imp):
					t.Errorf("%s imports %s", room, imp)
				case !strings.Contains(strings.Split(imp, "/")[0], ".") && !strings.HasPrefix(imp, "tailcast"):
				case !slices.ContainsFunc(rule.may, func(p string) bool { return strings.HasPrefix(imp, p) }):
					t.Errorf("%s imports %s", room, imp)
				}
			}
		})
	}
}

// TestEveryRoomIsOnTheMap fails when a room appears that the map does not know.
func TestEveryRoomIsOnTheMap(t *testing.T) {
	helpers := []string{"internal/kafkatest", "internal/testkit", "internal/ssetest", "internal/httpcases", "internal/guard", "apptest", "bench/cmd", "bench/peers"}
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if pkg, err := build.ImportDir(dir, 0); err != nil || len(pkg.GoFiles) == 0 {
			return nil //nolint:nilerr // no Go files of the product
		}
		room := path.Clean(filepath.ToSlash(dir))
		if _, ok := rooms[room]; !ok && !slices.ContainsFunc(helpers, func(h string) bool { return strings.HasPrefix(room, h) }) {
			t.Errorf("%s is not on the map", room)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
