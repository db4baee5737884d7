package config

import (
	"fmt"
	"strings"
)

var summaries = map[string]string{
	Serve:       "Tail Kafka topics and cast every record to browsers as Server-Sent Events.",
	Demonstrate: "Run the gateway with a Kafka broker, a sample producer and a page, all in this process.",
	Check:       "Read the configuration as serve would, print what would be served, and end.",
}

// Help returns what --help prints for a command with a configuration: lines of
// at most 100 columns.
func Help(command string) string {
	const width = 100
	l := newLoader(command)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: tailcast %s [flags]\n", summaries[command], command)
	group := ""
	for _, name := range l.names() {
		s := l.byName[name]
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		left := "  --" + s.name + " " + s.placeholder()
		const column = 38
		for i, line := range wrap(s.help+s.defaultNote(), width-column) {
			switch {
			case i > 0:
				left = ""
			case len(left) >= column:
				b.WriteString(left + "\n")
				left = ""
			}
			fmt.Fprintf(&b, "%-*s%s\n", column, left, line)
		}
	}
	b.WriteString("\n")
	for _, line := range wrap("Every flag is also a variable, --max-lag is "+envName("max-lag")+", and a key of the --config "+
		"file, max-lag. Flag > environment > file > default. Sizes are written 4MiB, 64KiB, 4096; durations 500ms, 20s, 5m. "+
		"Lists take commas, or the flag again.", width) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// placeholder is what stands for the value in help.
func (s *setting) placeholder() string {
	if s.value.list {
		return s.value.arg + ",..."
	}
	return s.value.arg
}

// defaultText is the default for a reader: "" when there is none.
func (s *setting) defaultText() string {
	if s.means != "" {
		return s.means
	}
	return s.def
}

func (s *setting) defaultNote() string {
	if s.defaultText() == "" {
		return ""
	}
	return " (default " + s.defaultText() + ")"
}

// wrap breaks text at blanks into lines of at most width bytes, if its words
// allow.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
