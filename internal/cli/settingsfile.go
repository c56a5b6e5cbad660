package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	claudecode "github.com/assent-dev/assent/integrations/claude-code"
)

// formerSuffix names the copy of the settings as they were before Assent's
// hook. An empty copy means that there was no file.
const formerSuffix = ".before-assent"

// settingsFile is a settings file of an agent, as it was read.
type settingsFile struct {
	// path is where it really is: behind the symbolic links that people keep
	// their settings by.
	path   string
	text   []byte
	exists bool
	mode   fs.FileMode
	parsed *claudecode.Settings
}

// openSettings reads path, or starts from nothing where there is no file.
func openSettings(path string) (*settingsFile, error) {
	f := &settingsFile{path: path, mode: 0o600}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		f.path, f.exists = real, true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("finding the settings: %w", err)
	default:
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a link to nothing: mend it, or name another file with --settings", path)
		}
		f.parsed, err = claudecode.ParseSettings(nil)
		return f, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("looking at the settings: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: name another with --settings", f.path)
	}
	f.mode = info.Mode().Perm()
	if f.text, err = os.ReadFile(f.path); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	if f.parsed, err = claudecode.ParseSettings(f.text); err != nil {
		return nil, fmt.Errorf("%s: %w: mend it first; nothing was changed", f.path, err)
	}
	return f, nil
}

// keep stores the text as it is before our hook.
func (f *settingsFile) keep() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("making the folder for the settings: %w", err)
	}
	return replaceFile(f.path+formerSuffix, f.text, f.mode)
}

// former is what the settings become without our hook, which command names: the
// text as it was, if all that has changed since is what Install changed.
// existed is false where there was no file.
func (f *settingsFile) former(command string) (text []byte, existed bool) {
	kept, err := os.ReadFile(f.path + formerSuffix)
	if err != nil {
		return f.parsed.Text(), true
	}
	before, err := claudecode.ParseSettings(kept)
	if err != nil || !before.Install(command) || !bytes.Equal(before.Text(), f.text) {
		return f.parsed.Text(), true
	}
	return kept, len(kept) > 0
}

func (f *settingsFile) forget() error {
	if err := os.Remove(f.path + formerSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the copy of the former settings: %w", err)
	}
	return nil
}

// write replaces the file in one step. What somebody else wrote since it was
// read is not overwritten.
func (f *settingsFile) write(text []byte) error {
	if err := f.unchanged(); err != nil {
		return err
	}
	return replaceFile(f.path, text, f.mode)
}

func (f *settingsFile) delete() error {
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := os.Remove(f.path); err != nil {
		return fmt.Errorf("removing the settings: %w", err)
	}
	return nil
}

func (f *settingsFile) unchanged() error {
	now, err := os.ReadFile(f.path)
	if err != nil && (f.exists || !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("reading the settings again: %w", err)
	}
	if !bytes.Equal(now, f.text) {
		return fmt.Errorf("%s has changed in the meantime, nothing was written: run it again", f.path)
	}
	return nil
}

// replaceFile writes a file in one step: a reader sees the old one or the new.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(text)
	if err := errors.Join(werr, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return nil
}
