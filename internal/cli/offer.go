package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
)

// OfferFlags say what sandboxes a program may have that asks for them by itself, and on which server.
type OfferFlags struct {
	createFlags
}

// Register adds the flags.
func (f *OfferFlags) Register(fs *pflag.FlagSet) {
	f.RemoteFlags.register(fs)
	f.specFlags.register(fs)
	registerUndo(fs, &f.undo)
	f.undo = string(paddock.UndoOn)
	if flag := fs.Lookup("undo"); flag != nil {
		flag.DefValue = f.undo
	}
}

// An Offered is what the flags allow.
type Offered struct {
	Spec      paddock.Spec     // of each sandbox, without the directory
	Directory []paddock.Mount  // writable; empty is none
	Undo      paddock.UndoMode // of sandboxes that have the directory writable
	named     bool             // the directory was named by a flag
}

// Offered returns what the flags allow. The directory is that of --workspace, or the working directory, if that is no
// directory that people hand over by mistake.
func (f *OfferFlags) Offered(a *App, changed func(string) bool) (Offered, error) {
	if changed("mode") {
		return Offered{}, WithHint(fmt.Errorf("--mode is about one command: %w", paddock.Unsupported), "say with --allow, --read and --write what sandboxes may have")
	}
	p, err := f.asked(a, func(name string) bool { return name != "workspace" && changed(name) })
	if err == nil {
		err = p.unbudgeted()
	}
	if err != nil {
		return Offered{}, err
	}
	o := Offered{Spec: p.spec, Undo: p.spec.Undo}
	o.Spec.Undo = paddock.UndoOff
	var dir string
	if o.named = changed("workspace"); o.named {
		if dir, err = f.workspaceDir(p.host); err != nil {
			return Offered{}, err
		}
	} else if dir, err = a.Dir(); err != nil || tooMuch(dir, p.host.Home) != "" {
		return o, nil //nolint:nilerr // without a directory there is none to offer
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Offered{}, fmt.Errorf("workspace: %w: %w", err, paddock.NotFound)
	}
	o.Directory = []paddock.Mount{{Source: dir, Write: true}}
	if common, ok := commonDir(dir, p.host.Home); ok {
		o.Directory = append(o.Directory, paddock.Mount{Source: common, Write: true})
	}
	return o, nil
}

// Lasting refuses flags that a configuration cannot hold: those that Offered refuses, and paths that depend on the directory
// in which the program is started, but for a workspace, which may be "." there.
func (f *OfferFlags) Lasting(a *App, changed func(string) bool) error {
	f.look = true
	other := *f
	if f.workspace == "." {
		other.workspace = ""
	}
	if other.needsDir() {
		return WithHint(fmt.Errorf("the program is started in other directories, so a path must not depend on this one: %w", paddock.Invalid), "write paths from /, or --workspace .")
	}
	_, err := f.Offered(a, changed)
	return err
}

// At fits the offer to a server. One on another machine sees no files of this one.
func (o *Offered) At(r *Remote) error {
	if r.At.local() {
		return nil
	}
	spec := o.Spec
	if o.named {
		spec.Mounts = append(spec.Mounts, o.Directory...)
	}
	o.Directory = nil
	return r.sees(spec)
}
