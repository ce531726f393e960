package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
)

// A Settings is a file of settings of another program, into which something of Paddock's is installed. It is changed as the
// files of hooks are: the user sees the change first, and what the file had is kept, so that it can come back to the byte.
type Settings struct {
	What string // is installed; it names the directory of records
	Who  string // reads the file
	Dir  string // the user's word; no link below it is followed without being asked for
	Name string // below it

	// Install gives the file with what is installed. Remove gives it without, and whether it was there; see package
	// mcpclient.
	Install func(file []byte) ([]byte, error)
	Remove  func(file, original []byte) (left []byte, found bool, err error)
}

// SettingsFlags say which file is meant, and whether to ask.
type SettingsFlags struct{ placeFlags }

// Register adds the flags.
func (f *SettingsFlags) Register(fs *pflag.FlagSet) { f.register(fs) }

// Project reports whether the file of the project is meant.
func (f *SettingsFlags) Project() bool { return f.project }

// open opens the file, and what is known of it.
func (s Settings) open(a *App, f *SettingsFlags) (*hookFile, *hookRecord, error) {
	records, err := a.recordsOf(s.What)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range []string{filepath.Join(s.Dir, s.Name), filepath.Join(records, "x")} {
		if err := ownPlace(path); err != nil {
			return nil, nil, err
		}
	}
	file, err := openHookFile(s.Dir, s.Name, f.follow)
	if err != nil {
		return nil, nil, err
	}
	r, err := a.record(s.What, file.path)
	if err != nil {
		return nil, nil, errors.Join(err, file.root.Close())
	}
	if r == nil {
		r = &hookRecord{Version: 1, Path: file.path}
	}
	r.Agent, r.Dir, r.Name, r.Follow = s.Who, s.Dir, s.Name, f.follow
	return file, r, nil
}

// InstallIn changes the file, after the user has agreed.
func (a *App) InstallIn(s Settings, f *SettingsFlags) (path string, err error) {
	file, r, err := s.open(a, f)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.root.Close()) }()
	now, mode, err := file.read()
	if err != nil {
		return "", err
	}
	base := now
	switch {
	case r.Written != nil && now != nil && bytes.Equal(now, r.Written):
		base = r.original()
	case now != nil:
		if base, _, err = s.Remove(now, r.original()); err != nil {
			return "", inFile(file.path, err)
		}
	}
	to, err := s.Install(base)
	if err != nil {
		return "", inFile(file.path, err)
	}
	if bytes.Equal(to, now) {
		return file.path, nil
	}
	if err := a.agreed(f.placeFlags, file.path, now, to); err != nil {
		return "", err
	}
	r.Existed, r.Original, r.Written = base != nil, base, to
	if err := a.keepRecord(s.What, r); err != nil {
		return "", err
	}
	made, err := file.replace(now, to, mode)
	if err == nil && len(made) > 0 {
		r.Dirs = made
		err = a.keepRecord(s.What, r)
	}
	return file.path, err
}

// RemoveFrom takes out what InstallIn put in. It reports false if nothing was there.
func (a *App) RemoveFrom(s Settings, f *SettingsFlags) (path string, found bool, err error) {
	file, r, err := s.open(a, f)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, file.root.Close()) }()
	now, mode, err := file.read()
	switch {
	case err != nil:
		return "", false, err
	case now == nil:
		return file.path, false, a.forgetRecord(s.What, file.path)
	}
	left, original := r.original(), r.original()
	if r.Written == nil || !bytes.Equal(now, r.Written) {
		if r.Written == nil {
			original = now // what it had before is not known, so nothing else is taken out
		}
		if left, found, err = s.Remove(now, original); err != nil {
			return "", false, inFile(file.path, err)
		}
		if !found {
			return file.path, false, a.forgetRecord(s.What, file.path)
		}
	}
	if err := a.agreed(f.placeFlags, file.path, now, left); err != nil {
		return "", false, err
	}
	if left == nil {
		err = file.remove(now, r.Dirs)
	} else {
		_, err = file.replace(now, left, mode)
	}
	if err != nil {
		return "", false, err
	}
	return file.path, true, a.forgetRecord(s.What, file.path)
}

// Program returns the path of the file of the program that was installed, without links, for a configuration that starts it
// later.
func (a *App) Program() (string, error) {
	if a.Installed == "" {
		return programPath()
	}
	path, err := filepath.EvalSymlinks(a.Installed)
	if err != nil {
		return "", WithHint(fmt.Errorf("the program was moved or replaced since it was started: %w: %w", err, paddock.Conflict), "try again")
	}
	if there, err := os.Stat(a.Installed); err != nil {
		return "", fmt.Errorf("find the program: %w", err)
	} else if named, err := os.Stat(path); err != nil || !os.SameFile(there, named) {
		return "", WithHint(fmt.Errorf("the program was replaced since it was started: %w", paddock.Conflict), "try again")
	}
	return path, nil
}
