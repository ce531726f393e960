package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func TestOnlyTheOwnerReachesTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files say nothing on Windows")
	}
	place := storetest.SQLite().Place(t)
	s := storetest.Open(t, place)
	must(t, s.AddTenant(t.Context(), store.Tenant{ID: "acme"}))
	files, err := filepath.Glob(place + "*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(place): 0o700, files[0]: 0o600, files[1]: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	must(t, s.Close())
	for _, name := range []string{place, filepath.Dir(place)} {
		before, err := os.Stat(name)
		must(t, err)
		must(t, os.Chmod(name, before.Mode().Perm()|0o040))
		_, err = store.Open(t.Context(), place)
		wantKind(t, err, paddock.Denied)
		if err == nil || !strings.Contains(err.Error(), "chmod go= "+name) {
			t.Errorf("no remedy: %v", err)
		}
		must(t, os.Chmod(name, before.Mode().Perm()))
	}
	must(t, storetest.Open(t, place).Ping(t.Context()))
}

func TestOnlyWhatEndsWithThePowerIsNotWaitedForTheDisk(t *testing.T) {
	s := storetest.SQLite().New(t)
	for range 2 { // neither mode stays
		for _, one := range []struct {
			safe bool
			want int
		}{{true, 2}, {false, 1}} {
			if mode, err := s.Synchronous(t.Context(), one.safe); err != nil || mode != one.want {
				t.Errorf("safe %v: %d, %v", one.safe, mode, err)
			}
		}
	}
}

func TestADamagedFileIsToldInWords(t *testing.T) {
	place := storetest.SQLite().Place(t)
	s, err := store.Open(t.Context(), place)
	must(t, err)
	must(t, s.AddTenant(t.Context(), store.Tenant{ID: "acme"}))
	for i := range 200 {
		must(t, s.AddSandbox(t.Context(), box(paddock.ID(fmt.Sprint("b", i)), "acme"), welcome))
	}
	must(t, s.Close())
	whole, err := os.ReadFile(place)
	must(t, err)
	for name, damage := range map[string]func([]byte) []byte{
		"another file":    func([]byte) []byte { return []byte(strings.Repeat("this is a diary. ", 300)) },
		"a lost half":     func(b []byte) []byte { return b[:len(b)/2/4096*4096] },
		"a broken header": func(b []byte) []byte { return append(make([]byte, 100), b[100:]...) },
		"broken pages": func(b []byte) []byte {
			for i := 4096; i < len(b); i++ {
				b[i] ^= 0x5a
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := damage(append([]byte(nil), whole...))
			must(t, os.WriteFile(place, damaged, 0o600))
			_, err := store.Open(t.Context(), place)
			wantKind(t, err, paddock.Internal)
			if err == nil || !strings.Contains(err.Error(), "the state file is damaged") {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadFile(place); err != nil || len(left) != len(damaged) {
				t.Errorf("what is left of it was touched: %d bytes, %v", len(left), err)
			}
		})
	}
}

func TestOddPlacesAreFilesOfTheirName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c=d#e%20f")
	must(t, os.Mkdir(dir, 0o700))
	place := filepath.Join(dir, "x?mode=memory&.db")
	must(t, storetest.Open(t, place).AddTenant(t.Context(), store.Tenant{ID: "acme"}))
	if info, err := os.Stat(place); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := storetest.Open(t, place).Tenant(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
}

func TestAWrongURLIsToldWithoutItsPassword(t *testing.T) {
	for _, place := range []string{
		"postgres://me:hunter2@/%zz", "postgres://me:hunter2@127.0.0.1:1/db?sslmode=disable&connect_timeout=1", "postgres://me:hunter2@host:port/db",
	} {
		s, err := store.Open(context.Background(), place)
		if err == nil {
			t.Fatalf("opened: %v", s.Close())
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is told: %v", err)
		}
		if kind := paddock.KindOf(err); kind != paddock.Invalid && kind != paddock.Unavailable {
			t.Errorf("got %v", err)
		}
	}
}
