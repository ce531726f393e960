package drivertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func namePromises() []group {
	return []group{{promises: []promise{
		{"a file may have any name that Linux allows", oddNames},
		{"a name that is not absolute, holds NUL or is too long is invalid, for every call", badNames},
	}}}
}

func oddNames(t *testing.T, s *suite) {
	b := s.box(t)
	for _, name := range []string{
		"a space", " ", "new\nline", "tab\t", "héllo 🐎", "e\u0301 decomposed", "\xff\xfe not UTF-8", "\x01\x7f",
		"-rf", "--", "*", "?", "~", "$HOME", `back\slash`, `"quoted"`, "'", ";", "...", ".hidden", "%00", "a%2fb",
		strings.Repeat("x", 255), strings.Repeat("é", 127),
	} {
		full, moved := b.dir+"/"+name, b.dir+"/moved-"+name[:min(len(name), 20)]
		b.put(t, full, []byte(name), 0)
		if got := b.get(t, full); string(got) != name {
			t.Errorf("%q holds %q", name, got)
		}
		if got := b.must(t, `cat "$1"`, full); got != name {
			t.Errorf("inside, %q holds %q", name, got)
		}
		if fi := b.stat(t, full); fi.Name != full {
			t.Errorf("Stat calls %q %q", full, fi.Name)
		}
		found, err := b.list(bounded(t), b.dir, 1)
		if _, ok := found[full]; !ok || len(found) != 1 || err != nil {
			t.Errorf("%q is listed as %v, %v", full, found, err)
		}
		if err := b.FS().Rename(bounded(t), full, moved); err != nil {
			t.Errorf("rename %q: %v", name, err)
		}
		if err := b.FS().Remove(bounded(t), moved, false); err != nil {
			t.Errorf("remove %q: %v", moved, err)
		}
	}
	deep := b.dir + strings.Repeat("/"+strings.Repeat("d", 200), 15) // 3000 bytes
	if err := b.write(bounded(t), deep+"/file", strings.NewReader("deep"), paddock.CreateOptions{Parents: true}); err != nil {
		t.Errorf("a name of %d bytes: %v", len(deep), err)
	}
}

func badNames(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), nil, 0)
	calls := map[string]func(ctx context.Context, name string) error{
		"Open": func(ctx context.Context, name string) error {
			_, err := b.read(ctx, name, paddock.OpenOptions{})
			return err
		},
		"Create": func(ctx context.Context, name string) error {
			return b.write(ctx, name, strings.NewReader("x"), paddock.CreateOptions{Parents: true})
		},
		"Stat": func(ctx context.Context, name string) error { _, err := b.FS().Stat(ctx, name); return err },
		"List": func(ctx context.Context, name string) error { _, err := b.list(ctx, name, 1); return err },
		"Mkdir": func(ctx context.Context, name string) error {
			return b.FS().Mkdir(ctx, name, paddock.MkdirOptions{Parents: true})
		},
		"Rename from": func(ctx context.Context, name string) error { return b.FS().Rename(ctx, name, b.in("x")) },
		"Rename to":   func(ctx context.Context, name string) error { return b.FS().Rename(ctx, b.in("file"), name) },
		"Remove":      func(ctx context.Context, name string) error { return b.FS().Remove(ctx, name, false) },
		"Remove all":  func(ctx context.Context, name string) error { return b.FS().Remove(ctx, name, true) },
		"Chmod":       func(ctx context.Context, name string) error { return b.FS().Chmod(ctx, name, 0o644) },
		"Symlink":     func(ctx context.Context, name string) error { return b.FS().Symlink(ctx, "target", name) },
	}
	if s.info.Can(paddock.CanWatch) {
		calls["Watch"] = func(ctx context.Context, name string) error {
			w, err := b.FS().Watch(ctx, name, paddock.WatchOptions{})
			if err == nil {
				err = w.Close()
			}
			return err
		}
	}
	for what, name := range map[string]string{
		"empty":         "",
		"relative":      "file",
		"dotted":        "./file",
		"with NUL":      b.dir + "/a\x00b",
		"ending in NUL": b.in("file") + "\x00",
		"a long part":   b.in(strings.Repeat("x", 256)),
		"long":          b.dir + strings.Repeat("/dir", 1200),
		"huge":          "/" + strings.Repeat("x", 1<<20),
	} {
		for call, do := range calls {
			wantKind(t, fmt.Sprintf("%s of a name that is %s", call, what), do(bounded(t), name), paddock.Invalid)
		}
	}
	if !b.exists(t, b.in("file")) {
		t.Error("a refused call removed the file")
	}
}
