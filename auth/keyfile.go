package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"tailcast/internal/wait"
)

// lookEvery is how often files of keys are read again. They are compared by what
// they hold: a mounted secret is a link that is turned, and a copied file may keep
// its time.
const lookEvery = 10 * time.Second

// keyFile fills a keyring from a file, again and again. Node.Run alone looks.
type keyFile struct {
	path   string
	secret bool // it holds one, for HS algorithms
	ring   *keyring
	log    *slog.Logger

	seen  [sha256.Size]byte // hash of what it held when last read
	wrong bool              // it could not be read then
}

// openKeys reads a file of keys. The error names it.
func openKeys(path string, secret bool, log *slog.Logger) (*keyFile, error) {
	f := &keyFile{path: path, secret: secret, ring: &keyring{}, log: log}
	text, err := f.read()
	if err == nil {
		err = f.load(text)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// look reads the file and takes what is new in it. A file that is out of order
// changes nothing, and is logged once.
func (f *keyFile) look() {
	text, err := f.read()
	switch {
	case err != nil && f.wrong, err == nil && !f.wrong && sha256.Sum256(text) == f.seen:
		return
	case err == nil:
		err = f.load(text)
	default:
		f.wrong = true
	}
	if err != nil {
		f.log.Error("a guard's keys are kept as they were", slog.Any("error", err))
		return
	}
	f.log.Info("a guard's keys read again", slog.String("file", f.path), slog.Int("keys", f.ring.current().n))
}

func (f *keyFile) read() ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, keysBytesMax+1))
	if err == nil && len(text) > keysBytesMax {
		err = fmt.Errorf("%s: longer than 1 MiB", f.path)
	}
	return text, err
}

// load makes the keys in text the keyring's, if they are in order.
func (f *keyFile) load(text []byte) error {
	f.seen, f.wrong = sha256.Sum256(text), false
	set, err := parseKeys(text, f.secret)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.ring.set.Store(set)
	return nil
}

// watch looks at the files until ctx ends.
func watch(ctx context.Context, files []*keyFile) {
	wait.Every(ctx, lookEvery, func(time.Time) {
		for _, f := range files {
			f.look()
		}
	})
}
