//go:build !linux

package step

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

type tree struct {
	dev, ino uint64
	uid, gid uint32
}

const (
	stageDir    = ".paddock"
	stagePrefix = "undo-"

	tick       = 20 * time.Millisecond
	tickCoarse = 2100 * time.Millisecond
)

var (
	errMoving = errors.New("it changes while it is read")
	errLarge  = errors.New("it is larger than a file may be whose contents are kept")
	errPieces = errors.New("it has more pieces between holes than are kept")
	errNoSwap = errors.New("the file system cannot exchange two names")
)

func no() error {
	return fmt.Errorf("steps and their undo on %s: use Linux, or a virtual machine with it: %w", runtime.GOOS, paddock.Unsupported)
}

func openTree(string) (*tree, error) { return nil, no() }

func full(error) bool { return false }

func (t *tree) close() {}

func (t *tree) stat(string) (State, error) { return State{}, no() }

func (t *tree) contents(string, State, int64, func(iter.Seq2[snapshot.Extent, error]) error) (State, error) {
	return State{}, no()
}

func (t *tree) small(string, State, int64) ([]byte, State, error) { return nil, State{}, no() }

func (t *tree) digest(string, State, int64) (State, error) { return State{}, no() }

func (t *tree) text(string, State, int64) ([]byte, State, error) { return nil, State{}, no() }

func (t *tree) starts(string, string) bool { return false }

func (t *tree) names(string, func(func(string) bool)) {}

func (t *tree) mkdir(string) error { return no() }

func (t *tree) rmdir(string) error { return no() }

func (t *tree) unlink(string) error { return no() }

func (t *tree) move(string, *tree, string) error { return no() }

func (t *tree) stage(string) (string, error) { return "", no() }

func (t *tree) unstage(string) {}

func (t *tree) land(string, string, landing) error { return no() }

func (t *tree) claim(context.Context, []string, *patience) (func(), error) { return func() {}, no() }

func (t *tree) mayHave(string, func(func(string) bool)) {}

func (t *tree) settle(string, *State, *State, int, int) error { return no() }

func (t *tree) make(context.Context, string, *State, iter.Seq2[snapshot.Extent, error], bool) error {
	return no()
}

func (t *tree) rewrite(context.Context, string, *State, int64, iter.Seq2[snapshot.Extent, error], bool) error {
	return no()
}

func (t *tree) discard(string) error { return no() }

func (t *tree) empty(string) (bool, error) { return false, no() }

func (t *tree) list(string, int, int, bool) ([]string, bool, error) { return nil, false, no() }

func (t *tree) unlock(string, uint32) error { return no() }

func (t *tree) laid(string, *State) (laid, error) { return laid{}, no() }

func removeLayer(*os.Root, string) error { return no() }

func furnish(string, string) error { return no() }

func awaitLock(context.Context, *os.File) error { return no() }

func weigh(string, int, func() error) (weight, error) { return weight{}, no() }

func (t *tree) handle(string) (string, error) { return "", no() }

func (t *tree) identity(string, *State) identity { return identity{} }
