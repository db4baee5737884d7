package static

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

// visible is what of a directory may be seen: regular files, and directories
// that have an index.html, which stands for them; nothing whose name begins
// with a dot, and no link that leads out of the directory (os.Root).
type visible struct{ root *os.Root }

// Open implements fs.FS.
func (v visible) Open(name string) (fs.File, error) {
	no := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") && name != "." || strings.Contains(name, "/.") {
		return nil, no
	}
	info, err := v.root.Stat(name)
	switch {
	case err != nil:
		return nil, no // also a link that leads out: nobody is told that it is there
	case info.IsDir():
		if index, err := v.root.Stat(path.Join(name, "index.html")); err != nil || !index.Mode().IsRegular() {
			return nil, no
		}
	case !info.Mode().IsRegular(): // a pipe would never open
		return nil, no
	}
	f, err := v.root.Open(name)
	if err != nil {
		return nil, no
	}
	return f, nil
}
