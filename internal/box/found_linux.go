package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// recordName is the file in the directory of a saved box that says whose it is. The state
// directory may be in memory: it is gone after a logout or a restart of the host, and what
// was saved is not.
const recordName = "sandbox.json"

// SealName is the file that completes the directory of a saved box. It is written last.
const SealName = "checkpoint.json"

// A record describes a paused sandbox.
type record struct {
	ID    paddock.ID `json:"id"`
	Dir   string     `json:"dir"` // of the sandbox, in the state directory
	About about      `json:"about"`
}

// write stores the record in the directory of the saved box.
func (r *record) write(saved string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(saved, recordName), data)
}

// writeWhole writes a file that is complete or absent.
func writeWhole(name string, data []byte) error {
	if err := os.WriteFile(name+".new", data, 0o600); err != nil { //nolint:gosec // a directory of the user's own
		return fmt.Errorf("remember the sandbox: %w", err)
	}
	return os.Rename(name+".new", name)
}

func readRecord(saved string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(saved, recordName))
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", saved, err, paddock.Conflict)
	}
	if !r.ID.Valid() || !filepath.IsAbs(r.Dir) {
		return nil, fmt.Errorf("%s: it names no sandbox: %w", saved, paddock.Conflict)
	}
	return r, nil
}

// findPaused remembers again the paused sandboxes that the state directory has lost, and
// removes what is left of pauses that a restart of the host interrupted. It returns the
// status of each sandbox that it could not remember, with the reason. What was saved of such
// a sandbox stays as it is.
func (d *Driver) findPaused(ctx context.Context) ([]paddock.Status, error) {
	if d.tier.Snapshots == nil {
		return nil, nil
	}
	for _, dir := range []string{d.site.Data, d.site.state} {
		if err := CheckOwn(dir); err != nil {
			return nil, nil //nolint:nilerr // what other users may change is not believed; whoever uses it is told
		}
	}
	entries, err := os.ReadDir(d.site.Data)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("look for paused sandboxes: %w", err)
	}
	var lost []paddock.Status
	for _, e := range entries {
		dir := filepath.Join(d.site.Data, e.Name())
		paused, whole := d.tier.Snapshots.Paused(dir)
		if !paused || CheckOwn(dir) != nil {
			continue
		}
		err := d.find(ctx, dir, whole)
		if e := ctx.Err(); e != nil {
			return nil, fmt.Errorf("look for paused sandboxes: %w: %w", e, EndKind(e))
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		st := paddock.Status{ID: paddock.ID(e.Name()), Tier: d.tier.Name, State: paddock.Dead, Reason: fmt.Sprintf(
			"it is paused and cannot be found again: %v; mend that, or remove the directory %s", err, dir)}
		if info, err := e.Info(); err == nil {
			st.Created = info.ModTime()
		}
		lost = append(lost, st)
	}
	return lost, nil
}

// find remembers the sandbox of a saved box.
func (d *Driver) find(ctx context.Context, saved string, whole bool) error {
	r, err := d.lost(saved)
	if err != nil || r == nil {
		return err
	}
	lock, err := sys.LockDir(ctx, saved)
	if err != nil {
		return err
	}
	defer lock.Close()
	if r, err = d.lost(saved); err != nil || r == nil { // somebody else has found it meanwhile
		return err
	}
	if !whole {
		return os.RemoveAll(saved)
	}
	if err := OwnDirectory(d.site.state); err != nil {
		return err
	}
	dir := filepath.Join(d.site.state, string(r.ID))
	r.Dir, r.About.Saved, r.About.Groups = dir, saved, nil
	if err := r.write(saved); err != nil {
		return err
	}
	made, err := os.MkdirTemp(d.site.state, ".found-") // no ID begins like that
	if err != nil {
		return err
	}
	data, err := json.Marshal(r.About)
	if err == nil {
		err = writeWhole(filepath.Join(made, aboutName), data)
	}
	if err == nil {
		err = sys.RenameNew(made, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return nil
}

// lost returns the record of a saved box whose sandbox is not remembered; nil means that
// somebody remembers it.
func (d *Driver) lost(saved string) (*record, error) {
	r, err := readRecord(saved)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.nameless(saved)
	case err != nil:
		return nil, err
	}
	for _, dir := range []string{r.Dir, filepath.Join(d.site.state, string(r.ID))} {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return r, nil
}

// bootName is the file in the directory of a paused box with the boot ID of the kernel that
// ran when the directory was made. The clock may have been set since, so times do not tell
// whether that was before the last start of the host.
const (
	bootName = "boot"
	bootID   = "/proc/sys/kernel/random/boot_id"
)

// MarkBoot writes into the directory of a box that is about to be saved which start of the host
// it belongs to.
func MarkBoot(dir string) error {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return fmt.Errorf("boot ID of the host: %w", err)
	}
	return writeWhole(filepath.Join(dir, bootName), boot)
}

// nameless returns a record of a saved box that has none, because an earlier version saved
// it or because it is not complete. Whoever knew of it may still do so, unless the host was
// restarted since.
func (d *Driver) nameless(saved string) (*record, error) {
	st, err := os.Lstat(saved)
	if err != nil {
		return nil, err
	}
	if earlier, err := beforeStart(saved, st); err != nil || !earlier {
		return nil, err
	}
	ids, err := d.rememberedIDs()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		a, err := (remoteOwner{dir: filepath.Join(d.site.state, string(id))}).read()
		if err != nil || a.Saved == saved || a.Saving == saved {
			return nil, err
		}
	}
	id := paddock.ID(filepath.Base(saved))
	if !id.Valid() {
		return nil, nil
	}
	return &record{ID: id, About: about{Created: st.ModTime()}}, nil
}

// beforeStart reports whether a directory was made before the last start of the host.
func beforeStart(saved string, st fs.FileInfo) (bool, error) {
	boot, err := os.ReadFile(filepath.Join(saved, bootName))
	if errors.Is(err, fs.ErrNotExist) { // an earlier version made it, and only its time is known
		return st.ModTime().Before(booted()), nil
	}
	if err != nil {
		return false, err
	}
	now, err := os.ReadFile(bootID)
	return err == nil && !bytes.Equal(boot, now), err
}

// booted returns when the host was started.
func booted() time.Time {
	var si syscall.Sysinfo_t
	if err := syscall.Sysinfo(&si); err != nil {
		return time.Time{} // nothing is older
	}
	return time.Now().Add(-time.Duration(si.Uptime) * time.Second)
}
