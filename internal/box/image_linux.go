package box

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/image"
)

// FileImageLock is the name in Plan.Files of the lock by which a sandbox holds its image. No box gets it: it could
// give the lock up.
const FileImageLock = "image lock"

// ownTree returns the directory with the whole file tree of a root that has one.
func ownTree(root paddock.Root) (dir string, ok bool) {
	switch root.Kind {
	case paddock.RootDir, paddock.RootImage:
		return root.Path, true
	}
	return "", false
}

// checkImage rejects a spec with an image that this driver cannot begin with. References are resolved above.
func (d *Driver) checkImage(spec *paddock.Spec) error {
	if d.site.o.Images == nil {
		return fmt.Errorf("root image: this driver has no store of images: %w", paddock.Unsupported)
	}
	if spec.Root.Path != "" || spec.Root.Snapshot != "" {
		return fmt.Errorf("root image takes a digest, and neither a path nor a snapshot: %w", paddock.Invalid)
	}
	if !goodDigest(spec.Root.Image) {
		return fmt.Errorf("image %.200q is not a digest (sha256: and 64 digits); references are resolved before: %w", spec.Root.Image, paddock.Invalid)
	}
	return nil
}

func goodDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	raw, err := hex.DecodeString(sum)
	return ok && err == nil && len(raw) == 32 && strings.ToLower(sum) == sum
}

// takeImage takes the image of a spec that has one as its root, and completes the spec by its configuration. While
// hold is open, nobody removes the image.
func (d *Driver) takeImage(ctx context.Context, spec *paddock.Spec) (hold *os.File, err error) {
	if spec.Root.Kind != paddock.RootImage {
		return nil, nil
	}
	if d.site.o.Images == nil { // of a snapshot that another driver made
		return nil, fmt.Errorf("root image: this driver has no store of images: %w", paddock.Unsupported)
	}
	tree, hold, err := d.site.o.Images.Tree(ctx, spec.Root.Image, cmp.Or(d.tier.Form, image.FormDir))
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", spec.Root.Image, err)
	}
	spec.Root.Path = tree.Path
	if err := configure(spec, tree.Config, d.tier.Root); err != nil {
		_ = hold.Close() // it was only read
		return nil, fmt.Errorf("image %s: %w", spec.Root.Image, err)
	}
	return hold, nil
}

// configure completes a spec by what the configuration of its image says. The configuration is a stranger's.
func configure(spec *paddock.Spec, c image.Config, root bool) error {
	if len(c.Env) > image.MaxVariables {
		return fmt.Errorf("its configuration has %d variables, the most are %d: %w", len(c.Env), image.MaxVariables, paddock.Invalid)
	}
	env := map[string]string{}
	for _, v := range c.Env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || strings.ContainsRune(v, 0) {
			return fmt.Errorf("its configuration has the variable %.64q, which is none: %w", v, paddock.Invalid)
		}
		env[name] = value
	}
	// What the network gives commands goes before the image's, and not before the caller's. Here they are still apart.
	for _, s := range spec.Policy.Network.Secrets {
		delete(env, s.Name)
	}
	if opensTLS(spec.Policy.Network) {
		for _, name := range slices.Concat(hostroot.BundleVariables(), hostroot.AuthorityVariables()) {
			delete(env, name)
		}
	}
	maps.Copy(env, spec.Env)
	if err := checkEnv(env); err != nil { // the spec's own was checked without the image's
		return err
	}
	spec.Env = env
	if spec.User == "" {
		spec.User = imageUser(c.User, root)
	}
	if spec.Dir == "" && c.Dir != "" && !slices.ContainsFunc(spec.Mounts, isDirectory) {
		if !path.IsAbs(c.Dir) || len(c.Dir) > 4096 || strings.ContainsRune(c.Dir, 0) {
			return fmt.Errorf("its configuration has the working directory %.64q, which is no absolute path: --dir names another: %w", c.Dir, paddock.Invalid)
		}
		spec.Dir = path.Clean(c.Dir)
	}
	return nil
}

// opensTLS reports whether the gateway has certificates of its own, which commands have to trust.
func opensTLS(n paddock.NetworkPolicy) bool {
	rules, err := decide.Compile(n)
	return n.Mode == paddock.NetworkList && err == nil && len(rules.Inspected()) > 0 // else it was refused before
}

// imageUser returns the user of a spec for that of an image: of "user:group" the user. Without one it is root. Root is
// no user of a sandbox that shares the kernel of the host: then it is the tier's own.
func imageUser(text string, root bool) string {
	name, _, _ := strings.Cut(text, ":")
	switch {
	case name != "" && name != "root" && name != "0":
		return name
	case root:
		return "root"
	}
	return ""
}

// isDirectory reports whether a mount shows a directory, which commands then begin in.
func isDirectory(m paddock.Mount) bool {
	st, err := os.Stat(m.Source)
	return err == nil && st.IsDir() && !m.Cache
}
