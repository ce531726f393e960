package chain

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAKeyIsMadeOnceForAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "audit")
	if _, err := ReadKey(dir); !errors.Is(err, paddock.NotFound) {
		t.Errorf("before there is one: %v", err)
	}
	prints := make([]string, 8)
	var wg sync.WaitGroup
	for i := range prints {
		wg.Go(func() {
			k, err := MakeKey(dir)
			if err != nil {
				t.Error(err)
				return
			}
			prints[i] = k.Fingerprint()
		})
	}
	wg.Wait()
	k, err := ReadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prints {
		if p != k.Fingerprint() || !IsFingerprint(p) {
			t.Errorf("%q, and the key has %q", p, k.Fingerprint())
		}
	}
	st, err := os.Stat(filepath.Join(dir, KeyName))
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v is left, %v", list, err)
	}
	// It signs what its public key verifies.
	text, err := PublicPEM(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublic(append([]byte(k.Fingerprint()+"\n"), text...))
	if err != nil || Fingerprint(public) != k.Fingerprint() {
		t.Errorf("%v, %v", public, err)
	}
	rep, err := Verify(bytes.NewReader(written(t, k, 3, true)), Options{Fingerprint: Fingerprint(public)})
	if err != nil || rep.State != Whole {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestAKeyThatOthersCouldHaveIsRefused(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, dir, key string) error
		want  string
	}{
		{"others may read it", func(_ *testing.T, _, key string) error { return os.Chmod(key, 0o640) }, "others may read it (mode 0640)"},
		{"others may write to its directory", func(_ *testing.T, dir, _ string) error { return os.Chmod(dir, 0o770) }, "only the calling user may write to"},
		{"others may replace its directory", func(_ *testing.T, dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "could put something in its place"},
		{"a link leads to it", func(_ *testing.T, _, key string) error {
			return errors.Join(os.Rename(key, key+"2"), os.Symlink(key+"2", key))
		}, "is no plain file"},
		{"a link leads to its directory", func(_ *testing.T, dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}, "is not a directory"},
		{"a link leads nowhere", func(_ *testing.T, _, key string) error {
			return errors.Join(os.Remove(key), os.Symlink(key+"2", key))
		}, "is no plain file"},
		{"somebody else's", func(t *testing.T, _, key string) error {
			if os.Geteuid() != 0 {
				t.Skip("only the superuser can give files away")
			}
			return os.Chown(key, 12345, -1)
		}, "is not the calling user's own"},
		{"it is empty", func(_ *testing.T, _, key string) error { return os.Truncate(key, 0) }, "it is no private key in PEM"},
		{"it is something else", func(_ *testing.T, _, key string) error {
			return os.WriteFile(key, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600)
		}, "invalid"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data", "audit")
			if _, err := MakeKey(dir); err != nil {
				t.Fatal(err)
			}
			if err := row.spoil(t, dir, filepath.Join(dir, KeyName)); err != nil {
				t.Fatal(err)
			}
			for _, open := range []func(string) (*Key, error){MakeKey, ReadKey} {
				if k, err := open(dir); err == nil || !strings.Contains(err.Error(), row.want) || paddock.KindOf(err) == paddock.Internal {
					t.Errorf("%v, %v; want %q", k, err, row.want)
				}
			}
		})
	}
}

func FuzzKeys(f *testing.F) {
	text, err := PublicPEM(keyOf(1).Public())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if k, err := ParsePublic(data); err == nil && !IsFingerprint(Fingerprint(k)) {
			t.Errorf("a key without a fingerprint: %q", data)
		}
		if k, err := parseKey(data); err == nil && !IsFingerprint(k.Fingerprint()) {
			t.Errorf("a key without a fingerprint: %q", data)
		}
	})
}
