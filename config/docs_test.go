package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/CONFIGURATION.md")

const docsFile = "../docs/CONFIGURATION.md"

// The tables of docs/CONFIGURATION.md are what the code says: go test ./config
// -update writes them.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, want := range map[string]string{"settings": settingsTable(), "routes": routesTable(), "guards": guardsTable()} {
		start, end := "<!-- "+name+": written by go test ./config -update -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, start)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s: the marks of the %s table are missing", docsFile, name)
		}
		if got != want && !*update {
			t.Errorf("%s: the %s table differs:\n%s", docsFile, name, firstDifference(got, want))
		}
		text = before + start + want + end + after
	}
	if *update {
		if err := os.WriteFile(docsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func settingsTable() string {
	var b strings.Builder
	group := ""
	for _, s := range settings(&Config{}) {
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n### %s\n\n| flag and key | variable | default | bounds | |\n|---|---|---|---|---|\n", group)
		}
		row := []string{code("--" + strings.TrimSpace(s.name+" "+s.placeholder())), code(envName(s.name)), code(s.def), s.value.bounds, s.help}
		if s.means != "" {
			row[2] = strings.TrimPrefix(row[2]+": "+s.means, ": ")
		}
		b.WriteString(tableRow(row))
	}
	return b.String() + "\n"
}

func routesTable() string {
	var b strings.Builder
	b.WriteString("\n| key | default | |\n|---|---|---|\n")
	for _, k := range routeKeys {
		b.WriteString(tableRow([]string{code(k.name), k.def, k.help}))
	}
	return b.String() + "\n"
}

func guardsTable() string {
	var b strings.Builder
	b.WriteString("\n| key | default | |\n|---|---|---|\n")
	for _, k := range guardKeys {
		b.WriteString(tableRow([]string{code(k.name), k.def, k.help}))
	}
	return b.String() + "\n"
}

// tableRow is one line of a Markdown table; a bar inside a cell is escaped.
func tableRow(cells []string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return " docs: " + a + "\n code: " + b
		}
	}
	return ""
}

// Every setting and every route key is in the documentation as a line of its
// own, whatever the tables look like.
func TestDocsNameEverySetting(t *testing.T) {
	raw, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings(&Config{}) {
		if !strings.Contains(string(raw), "\n| `--"+s.name) || !strings.Contains(string(raw), "| `"+envName(s.name)+"` |") {
			t.Errorf("--%s is not documented", s.name)
		}
	}
}

// The examples of the documentation can be pasted: each is a whole file.
func TestDocsExamples(t *testing.T) {
	raw, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(raw), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("no example")
	}
	for i, block := range blocks {
		example, _, _ := strings.Cut(block, "```")
		path := filepath.Join(t.TempDir(), "tailcast.yaml")
		if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Check, []string{"--config", path}, nil); err != nil {
			t.Errorf("example %d: %v", i+1, err)
		}
	}
}

// The messages shown in the documentation are those that come.
func TestDocsErrors(t *testing.T) {
	raw, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tc := range []struct{ args, env, file string }{
		{"", "", "listen: :8080\nkafka-brokrs: kafka-1:9092"},
		{"", "TAILCAST_MAX_LAG=4XB", ""},
		{"--heartbeat 500ms", "", ""},
	} {
		_, err := load(t, Serve, tc.args, tc.env, tc.file)
		if err == nil {
			t.Fatalf("%+v: no error", tc)
		}
		got = append(got, err.Error())
	}
	_, block, _ := strings.Cut(string(raw), "```text\n")
	block, _, _ = strings.Cut(block, "```")
	if want := strings.Split(strings.TrimSpace(block), "\n"); !reflect.DeepEqual(got, want) {
		t.Errorf("docs say\n%s\ncode says\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}
