package tailcast

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocsNameWhatExists: documents lead to the code by file and name, as in
// `hub/sink.go: Feed.append`, and those for readers of the code by `Feed.append`
// and `hub.Feed.mu` too. What was renamed must be renamed there.
func TestDocsNameWhatExists(t *testing.T) {
	code := declarations(t)
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob("docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, doc := range append(append(docs, records...), "README.md", "CHANGELOG.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		ofCode := strings.HasPrefix(doc, "docs/adr/") || doc == "docs/ARCHITECTURE.md" || doc == "docs/CONCURRENCY.md"
		for _, span := range codeSpan.FindAllStringSubmatch(string(text), -1) {
			is, exists := code.has(span[1], ofCode)
			if is {
				found++
			}
			if is && !exists {
				t.Errorf("%s: %s is not in the code", doc, span[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names found in the documents", found)
	}
}

// TestProtocolChunks: the chunks in docs/PROTOCOL.md, with their line ends
// written out, are as long as they say.
func TestProtocolChunks(t *testing.T) {
	text, err := os.ReadFile("docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	chunks := regexp.MustCompile(`(?m)^([0-9a-f]+)\\r\\n\n((?:.*\\n\n)*?)\\r\\n$`).FindAllStringSubmatch(string(text), -1)
	if len(chunks) < 2 {
		t.Errorf("%d chunks found", len(chunks))
	}
	for _, c := range chunks {
		if size := strconv.FormatInt(int64(len(strings.ReplaceAll(c[2], `\n`, ""))), 16); size != c[1] {
			t.Errorf("a chunk of %s bytes says %s:\n%s", size, c[1], c[2])
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	ofFile   = regexp.MustCompile(`^((?:[a-z0-9]+/)*[a-z0-9_]+\.go)(?:: ([A-Za-z.]+))?$`)
	dotted   = regexp.MustCompile(`^([A-Za-z0-9]+)\.(\w+)(?:\.(\w+))?$`)
)

// declared is what the module's own files declare.
type declared struct {
	files    map[string]map[string]bool            // by path: names, those of methods and fields as Type.name too
	packages map[string]map[string]bool            // by the last element of the path: top-level names
	members  map[string]map[string]map[string]bool // by package and type: fields and methods
}

// has reports whether a span of a document names something of the code, and
// whether that exists. Without dots, names count with their file alone.
func (d *declared) has(span string, dots bool) (is, exists bool) {
	if m := ofFile.FindStringSubmatch(span); m != nil {
		names, ok := d.files[m[1]]
		return true, ok && (m[2] == "" || names[m[2]])
	}
	m := dotted.FindStringSubmatch(span)
	if m == nil || !dots {
		return false, false
	}
	if names, ok := d.packages[m[1]]; ok {
		return true, names[m[2]] && (m[3] == "" || d.members[m[1]][m[2]][m[3]])
	}
	for _, types := range d.members {
		if members, ok := types[m[1]]; ok {
			is = true
			exists = exists || members[m[2]]
		}
	}
	return is, exists // else it is of another module
}

// declarations reads every package of the module.
func declarations(t *testing.T) *declared {
	t.Helper()
	d := &declared{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]map[string]bool{}}
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		switch name := e.Name(); {
		case err != nil:
			return err
		case e.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules"):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		d.add(filepath.ToSlash(file), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *declared) add(file string, f *ast.File) {
	room := path.Base(path.Dir(file))
	d.files[file] = map[string]bool{}
	if d.packages[room] == nil {
		d.packages[room], d.members[room] = map[string]bool{}, map[string]map[string]bool{}
	}
	top := func(name string) { d.files[file][name], d.packages[room][name] = true, true }
	member := func(of, name string) {
		if d.members[room][of] == nil {
			d.members[room][of] = map[string]bool{}
		}
		d.members[room][of][name], d.files[file][name], d.files[file][of+"."+name] = true, true, true
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				top(decl.Name.Name)
			} else {
				member(nameOf(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						top(name.Name)
					}
				case *ast.TypeSpec:
					top(spec.Name.Name)
					for _, name := range inside(spec.Type) {
						member(spec.Name.Name, name)
					}
				}
			}
		}
	}
}

// inside returns the fields of a struct, or the methods of an interface.
func inside(of ast.Expr) (names []string) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			names = append(names, nameOf(field.Type))
		}
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// nameOf is the name of a type: of a pointer, of one with parameters, or of one
// of another package.
func nameOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.StarExpr:
		return nameOf(of.X)
	case *ast.IndexExpr:
		return nameOf(of.X)
	case *ast.IndexListExpr:
		return nameOf(of.X)
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}
