package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// fileBytesMax bounds the configuration file: routesMax routes of 100 bytes. The
// parser's time grows with the square of the length, to some 2 s here.
const fileBytesMax = 512 << 10

// readFile reads the file that path names; none for the zero item.
func (l *loader) readFile(path item) ([]assignment, []placedRoute, error) {
	if path.text == "" {
		return nil, nil, nil
	}
	text, err := readBounded(path.text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path.from, err)
	}
	return l.parseFile(path.text, text)
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, onOneLine(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, onOneLine(err)
	}
	if len(text) > fileBytesMax {
		return nil, fmt.Errorf("%s is longer than %s", printable(path), Size(fileBytesMax))
	}
	return text, nil
}

// parseFile reads a configuration file: one mapping of settings, and routes.
func (l *loader) parseFile(path string, text []byte) ([]assignment, []placedRoute, error) {
	f := file(printable(path))
	root, err := f.parse(text)
	if err != nil || root == nil {
		return nil, nil, err
	}
	var (
		all    []assignment
		routes []placedRoute
		guard  *key
	)
	err = f.mapping(root, "the file", func(k key) error {
		switch k.name {
		case "routes":
			routes, err = f.routes(k)
			return err
		case "guard":
			guard = &k
			return nil
		}
		s := l.byName[k.name]
		if s == nil || s.name == configFile {
			return l.unknownKey(k)
		}
		a := assignment{setting: s, from: k.from}
		a.items, err = f.items(k, s.value.list)
		all = append(all, a)
		return err
	})
	if err == nil {
		l.guard, err = f.guards(guard, routes)
	}
	return all, routes, err
}

func (l *loader) unknownKey(k key) error {
	if k.name == configFile {
		return fmt.Errorf("%s: a file can't name another", k.from)
	}
	spell := func(name string) string { return name }
	return fmt.Errorf("%s: unknown setting%s", k.from, l.hint(k.name, spell, "routes", "guard"))
}

// file is a YAML file, by the name its errors begin with.
type file string

// key is one key of a mapping and what it holds.
type key struct {
	name  string
	from  string // tailcast.yaml:3:5: key "max-lag", at the key; errors about the key begin with it
	value ast.Node
}

// at is the beginning of errors about node, which k holds.
func (f file) at(k key, node ast.Node) string {
	return f.place(node) + ": key " + quote(k.name)
}

// place is where a node begins.
func (f file) place(node ast.Node) string {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		node = m.Values[0].Key // its own token is the first colon
	}
	p := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", f, p.Line, p.Column)
}

// parse returns the root of the only document; nil when it is empty.
func (f file) parse(text []byte) (ast.Node, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: is not UTF-8", f)
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, f.syntaxError(err)
	}
	var root ast.Node
	for _, doc := range tree.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); directive || doc.Body == nil {
			continue // the parser takes %YAML 1.2 for a document
		}
		if root != nil {
			return nil, fmt.Errorf("%s: a second document; one file is one document", f.place(doc.Body))
		}
		root = doc.Body
	}
	return root, nil
}

// syntaxError says an error of the parser on one line; its own text holds a
// piece of the file.
func (f file) syntaxError(err error) error {
	var y yaml.Error
	if !errors.As(err, &y) {
		return fmt.Errorf("%s: %w", f, onOneLine(err))
	}
	place := string(f)
	if token := y.GetToken(); token != nil && token.Position != nil {
		place = fmt.Sprintf("%s:%d:%d", f, token.Position.Line, token.Position.Column)
	}
	return fmt.Errorf("%s: %s", place, printable(y.GetMessage()))
}

// mapping visits the keys of node, which is called what in errors. The parser
// has refused double keys.
func (f file) mapping(node ast.Node, what string, visit func(key) error) error {
	m, ok := node.(*ast.MappingNode)
	if !ok {
		return fmt.Errorf("%s: %s must be a mapping of keys, not %s", f.place(node), what, kind(node))
	}
	for _, pair := range m.Values {
		name := pair.Key.GetToken().Value
		k := key{name: name, value: pair.Value}
		k.from = f.at(k, pair.Key)
		if err := visit(k); err != nil {
			return err
		}
	}
	return nil
}

// items returns the one value of a key; of a list key those of a sequence, or
// of one text with commas.
func (f file) items(k key, list bool) ([]item, error) {
	sequence, ok := k.value.(*ast.SequenceNode)
	if !ok || !list {
		text, err := f.scalar(k, k.value)
		return split(list, text, f.at(k, k.value)), err
	}
	all := make([]item, 0, len(sequence.Values))
	for _, node := range sequence.Values {
		text, err := f.scalar(k, node)
		if err != nil {
			return nil, err
		}
		all = append(all, item{text, f.at(k, node)})
	}
	return all, nil
}

// scalar returns the text of a value of k, as it is written: the settings know
// better than YAML what is a number.
func (f file) scalar(k key, node ast.Node) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, nil
	}
	return "", fmt.Errorf("%s: must be one value, not %s", f.at(k, node), kind(node))
}

// kind names a node for someone who writes YAML.
func kind(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.LiteralNode:
		return "a text of several lines"
	}
	return "a single value"
}

// onOneLine returns err if its text is one line, else its text made one.
func onOneLine(err error) error {
	if text := err.Error(); printable(text) != text {
		return errors.New(printable(text))
	}
	return err
}

// printable returns text if it can stand in a line as it is, else quoted.
func printable(text string) string {
	const most = 400 // of a path, and of the system's words about it
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	return quote(text)
}
