// Package output puts generated files where they belong: whole or not at all, only when their bytes
// change, and never over a file that is not ours.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
)

// File is one file as it should be; Want is nil for one that should not be there.
type File struct {
	Path string
	Want []byte
	have []byte
	info fs.FileInfo
}

// Read fetches what is on the disk now.
func (f *File) Read() error {
	info, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &NotRegularError{Path: f.Path, What: kind(info.Mode())}
	}
	f.have, err = os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) { // another run has removed it in between
		return nil
	}
	f.info = info
	return err
}

// NotRegularError is what Read answers for something that can neither be read nor replaced as a file.
type NotRegularError struct{ Path, What string }

// Error names the thing and the path.
func (e *NotRegularError) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Path, e.What)
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Exists says whether the file was there when it was read.
func (f *File) Exists() bool { return f.info != nil }

// Have is what was read.
func (f *File) Have() []byte { return f.have }

// Stale says whether the disk differs from what should be there.
func (f *File) Stale() bool {
	return f.Exists() != (f.Want != nil) || !bytes.Equal(f.have, f.Want)
}

// Diff is the change to come, as a unified diff under the given name.
func (f *File) Diff(name string) []byte {
	from, to := name, name
	if !f.Exists() {
		from = os.DevNull
	}
	if f.Want == nil {
		to = os.DevNull
	}
	d := diff.Diff(from, f.have, to, f.Want)
	// The first line is "diff from to", which git's tools do not expect here.
	if i := bytes.IndexByte(d, '\n'); i >= 0 {
		d = d[i+1:]
	}
	return d
}

// Write brings the disk to what should be there, if it differs.
func (f *File) Write() error {
	if !f.Stale() {
		return nil
	}
	if f.Want == nil {
		if err := os.Remove(f.Path); !errors.Is(err, fs.ErrNotExist) { // another run may have been quicker
			return err
		}
		return nil
	}
	mode := fs.FileMode(0o644)
	if f.Exists() {
		mode = f.info.Mode().Perm()
	}
	return replace(f.Path, f.Want, mode)
}

// removeLeft removes what runs that were killed in the middle have left beside a file. No run takes long,
// so nobody writes to what is older than the time given.
func removeLeft(path string, before time.Time) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), "."+filepath.Base(path)+".")
		number, temporary := strings.CutSuffix(number, ".tmp")
		if !ours || !temporary || number == "" || strings.Trim(number, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another run may have been quicker
			return err
		}
	}
	return nil
}

// replace writes a new file beside the old one and renames it over: a reader, a second run or a full
// disk never leaves half a file.
func replace(path string, data []byte, mode fs.FileMode) (err error) {
	if err := removeLeft(path, time.Now().Add(-time.Hour)); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(data); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err = tmp.Chmod(mode); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
