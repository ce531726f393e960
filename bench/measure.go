//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A contender is a command whose whole run is timed, from before fork to after
// wait.
type contender struct {
	name  string
	args  []string
	env   []string
	dir   string
	uid   int // -1 is the caller's
	every int // it runs in one of so many rounds; slow ones need fewer

	beside paddock.Tier // whose `true` it is compared with; empty is the jail's
	may    bool         // that it fails is a result
	hide   string       // a mount that it does not find; empty is none
}

func (c contender) run(ctx context.Context) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env, cmd.Dir = c.env, c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if c.uid >= 0 {
		id := uint32(c.uid)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	var took time.Duration
	var err error
	c.within(func() {
		began := time.Now()
		err = cmd.Run()
		took = time.Since(began)
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.name, err, stderr.String())
	}
	return took, nil
}

// within calls f where the mount that is to be hidden is not: on a thread of
// its own, which is not used again.
func (c contender) within(f func()) {
	if c.hide == "" {
		f()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		// Where this is not allowed, the command says what is wrong.
		if syscall.Unshare(syscall.CLONE_FS|syscall.CLONE_NEWNS) == nil && syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") == nil {
			_ = syscall.Unmount(c.hide, syscall.MNT_DETACH)
		}
		f()
	})
	wg.Wait()
}

const warmUp = 5 // runs of each that are not counted

// interleave runs the contenders in turns.
func interleave(ctx context.Context, rounds int, all []contender) (took map[string]samples, failed map[string]error, err error) {
	took, failed = map[string]samples{}, map[string]error{}
	for round := range warmUp + rounds {
		for _, c := range all {
			if failed[c.name] != nil || round >= warmUp && (round-warmUp)%c.every != 0 {
				continue
			}
			d, err := c.run(ctx)
			if err != nil && c.may && ctx.Err() == nil {
				failed[c.name] = err
				delete(took, c.name)
				continue
			} else if err != nil {
				return nil, nil, err
			}
			if round >= warmUp {
				took[c.name] = append(took[c.name], d)
			}
		}
	}
	return took, failed, nil
}

// samples are durations of the same thing.
type samples []time.Duration

// quantile gives the value that a part q of the samples does not exceed.
func (s samples) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

func (s samples) p50() time.Duration { return s.quantile(0.50) }
func (s samples) p99() time.Duration { return s.quantile(0.99) }
