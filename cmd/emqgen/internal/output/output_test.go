package output

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheSameBytesAreNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	old := time.Unix(1, 0)
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	f := File{Path: path, Want: []byte("x")}
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the file was touched: %v %v", info, err)
	}
}

func TestANewFileIsReadableByAll(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "f"), Want: []byte("x")}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestAFileThatIsThereKeepsItsMode(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o664, 0o444} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		f := File{Path: path, Want: []byte("new")}
		if err := f.Read(); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%v became %v (%v)", mode, info.Mode(), err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
			t.Errorf("%q %v", got, err)
		}
	}
}

// Another run at the same time has removed the file already.
func TestAFileThatIsGoneNeedNotBeRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := File{Path: path}
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(); err != nil {
		t.Error(err)
	}
}

// A rename that fails stands for every step that can: a full disk, a directory without rights.
func TestAFailedWriteLeavesEverythingAsItWas(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "f", "kept")
	if err := os.MkdirAll(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replace(filepath.Join(dir, "f"), []byte("x"), 0o644); err == nil {
		t.Error("no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("a temporary file is left: %v %v", entries, err)
	}
	if _, err := os.Stat(inTheWay); err != nil {
		t.Error(err)
	}
	if err := replace(filepath.Join(dir, "gone", "f"), []byte("x"), 0o644); err == nil {
		t.Error("no error from a directory that is not there")
	}
}

// A run that was killed between its write and its rename leaves the new file under a hidden name.
func TestWhatAKilledRunHasLeftIsRemovedLater(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	names := map[string]bool{ // whether it is still there afterwards
		".f.123.tmp": false, ".f.124.tmp": true, ".f.tmp": true, ".f..tmp": true, ".f.12x.tmp": true, ".g.123.tmp": true, "f.123.tmp": true,
	}
	for name := range names {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == ".f.124.tmp" { // of a run that goes on
			continue
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&File{Path: filepath.Join(dir, "f"), Want: []byte("new")}).Write(); err != nil {
		t.Fatal(err)
	}
	for name, kept := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != kept {
			t.Errorf("%s: %v, want kept %v", name, err, kept)
		}
	}
}
