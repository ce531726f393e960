package bootfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// A memo is QEMU's answer to the queries, which take a tenth of a second, and the identity
// of the program's file.
type memo struct {
	Path     string   `json:"path"`
	Size     int64    `json:"size"`
	Changed  int64    `json:"changed"` // ns since 1970
	Version  string   `json:"version"`
	Oldest   [2]int   `json:"oldest"` // oldest supported version at the time
	Firmware []string `json:"firmware"`
}

// KnownEngine returns the results of FindEngine and Engine.Firmware. It caches them in a
// file that only the caller can change, until the program changes. Without a usable file it
// makes the queries each time.
func KnownEngine(path, file string) (Engine, []string, error) {
	found, err := locate(path, engineDirs())
	if err != nil {
		return Engine{}, nil, err
	}
	now, err := stamp(found)
	if err != nil {
		return Engine{}, nil, err
	}
	var k memo
	data, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(data, &k) == nil && k.of(now) {
		return Engine{Path: k.Path, Version: k.Version}, k.Firmware, nil
	}
	e, err := FindEngine(path)
	if err != nil {
		return Engine{}, nil, err
	}
	dirs, err := e.Firmware()
	if err != nil {
		return Engine{}, nil, err
	}
	now.Version, now.Firmware = e.Version, dirs
	if e.Path == now.Path {
		_ = now.keep(file)
	}
	return e, dirs, nil
}

// stamp identifies a program's file.
func stamp(path string) (memo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return memo{}, fmt.Errorf("%w: %w", err, paddock.Unavailable)
	}
	return memo{Path: path, Size: st.Size(), Changed: st.ModTime().UnixNano(), Oldest: [2]int{oldestMajor, oldestMinor}}, nil
}

// of reports whether the memo is of that file and still valid.
func (k *memo) of(now memo) bool {
	return k.Path == now.Path && k.Size == now.Size && k.Changed == now.Changed && k.Oldest == now.Oldest && k.Version != "" && len(k.Firmware) > 0 &&
		!slices.ContainsFunc(k.Firmware, func(dir string) bool { return !filepath.IsAbs(dir) || !isDir(dir) })
}

func (k *memo) keep(file string) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return Keep(file, data)
}

// Keep writes a file atomically, and makes its directory. Only the file is private: users may share
// the kernel that setup puts beside it.
func Keep(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
