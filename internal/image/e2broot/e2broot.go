// Package e2broot makes the form of an image that sandboxes of E2B's API have as their root: a directory with the
// accounts that E2B's clients use, and with the files over which a sandbox puts its own. The image itself and its other
// forms stay as they are.
package e2broot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// Form is the name of the form, and Owner that of who alone removes it.
const (
	Form  image.Form = "e2b"
	Owner string     = "e2b"
)

// Converter returns what makes the form.
func Converter() store.Converter {
	return store.Converter{Form: Form, Version: 1, Owned: true, Make: convert}
}

func convert(ctx context.Context, c store.Conversion) (int64, error) {
	t, err := store.Unpack(ctx, c)
	if err != nil {
		return 0, err
	}
	defer t.Root.Close()
	if _, st, ok := t.Find("bin/bash"); !ok || !st.Mode().IsRegular() {
		return 0, fmt.Errorf("the image has no /bin/bash, with which steps and clients' commands are run: begin with one that has: %w", paddock.Unsupported)
	}
	if err := errors.Join(users(t), network(t)); err != nil {
		return 0, err
	}
	return c.Bytes - t.Bytes, nil
}

// users adds the accounts that sandboxes have: root, and user.
func users(t *layer.Tree) error {
	for _, f := range []struct{ name, root, user string }{
		{"etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", "user:x:N:N::/home/user:/bin/bash\n"},
		{"etc/group", "root:x:0:\n", "user:x:N:\n"},
	} {
		at, st, ok := t.Find(f.name)
		text := ""
		if ok {
			if !st.Mode().IsRegular() || st.Size() > 1<<20 {
				return fmt.Errorf("/%s of the image is no file of accounts: %w", f.name, paddock.Invalid)
			}
			data, err := t.Root.ReadFile(at)
			if err != nil {
				return err
			}
			text = string(data)
		} else if err := t.Root.MkdirAll("etc", 0o755); err != nil {
			return fmt.Errorf("/etc of the image: %w: %w", err, paddock.Invalid)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		names, numbers := map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(text) {
			if p := strings.Split(line, ":"); len(p) > 2 {
				names[p[0]], numbers[p[2]] = true, true
			}
		}
		if !names["root"] {
			text = f.root + text
		}
		if !names["user"] {
			n := 1000
			for numbers[strconv.Itoa(n)] {
				n++
			}
			text += strings.ReplaceAll(f.user, "N", strconv.Itoa(n))
		}
		if err := t.Root.WriteFile(at, []byte(text), 0o644); err != nil {
			return fmt.Errorf("/%s of the image: %w: %w", f.name, err, paddock.Invalid)
		}
	}
	return nil
}

// network makes the files over which a sandbox puts its own, where the image has
// none: its tree cannot be written any more then.
func network(t *layer.Tree) error {
	dir, st, ok := t.Find("etc")
	if !ok || !st.IsDir() {
		return fmt.Errorf("/etc of the image is no directory: %w", paddock.Invalid)
	}
	for _, name := range []string{"resolv.conf", "hosts", "nsswitch.conf"} {
		if _, st, ok := t.Find("etc/" + name); ok && st.Mode().IsRegular() {
			continue
		}
		at := path.Join(dir, name) // nothing, or a link that leads to nothing
		if err := errors.Join(t.Root.RemoveAll(at), t.Root.WriteFile(at, nil, 0o644)); err != nil {
			return fmt.Errorf("/etc/%s of the image: %w: %w", name, err, paddock.Invalid)
		}
	}
	return nil
}
