package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// fill runs in a mount namespace of its own: the place is a small disk there.
func fill(dir string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(dir, "paddock.db"))
	if err != nil {
		return err
	}
	if err := s.AddTenant(ctx, store.Tenant{ID: "acme"}); err != nil {
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	for round := range 3 {
		if err := errors.Join(stuff(ballast), fillUp(ctx, s, round), os.Remove(ballast)); err != nil {
			return err
		}
		for i := range 3 { // there is room again
			if err := s.AddSandbox(ctx, box(paddock.ID(fmt.Sprintf("again%d-%d", round, i)), "acme"), welcome); err != nil {
				return fmt.Errorf("with room again: %w", err)
			}
		}
	}
	return s.Close()
}

// stuff takes most of the disk.
func stuff(name string) error {
	err := os.WriteFile(name, make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.Truncate(name, info.Size()-64<<10)
}

// fillUp writes until nothing can be written, and checks what is there.
func fillUp(ctx context.Context, s *store.Store, round int) error {
	var kept []paddock.ID
	var full error
	for i := 0; full == nil && i < 10_000; i++ {
		b := box(paddock.ID(fmt.Sprintf("b%d-%d", round, i)), "acme")
		b.Labels = map[string]string{"long": strings.Repeat("x", 4000)}
		if full = s.AddSandbox(ctx, b, welcome); full == nil {
			kept = append(kept, b.ID)
		}
	}
	if paddock.KindOf(full) != paddock.Exhausted || !strings.Contains(full.Error(), "disk of the state is full") {
		return fmt.Errorf("a full disk is told as: %w", full)
	}
	fmt.Println("full:", full)
	for _, id := range kept {
		if _, err := s.Sandbox(ctx, "acme", id); err != nil {
			return fmt.Errorf("acknowledged: %w", err)
		}
		if err := s.ForgetSandbox(ctx, "token-"+string(id)); err != nil && paddock.KindOf(err) != paddock.Exhausted {
			return err
		}
	}
	return nil
}

func TestAFullDiskIsToldInWordsAndEndsWithRoom(t *testing.T) {
	cmd := part(t, "fill", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) || strings.Contains(said.String(), "mount: operation not permitted") {
		t.Skip("this host lets nobody mount a small disk: no user namespaces")
	}
	if err != nil || strings.Count(said.String(), "full: the disk") != 3 {
		t.Errorf("%v\n%s", err, said.String())
	}
}
