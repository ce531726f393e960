package step

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A weight is what a part of a layer takes on its disk.
type weight struct {
	bytes  int64
	files  int
	hidden bool // it has directories that could not be read
	deep   bool // it has some that are too deep
}

const (
	watchPause = time.Second      // between two measurements, at least
	watchRest  = 10 * time.Second // and at most
	watchTime  = time.Minute      // that a measurement may take

	// unseenMost is how much of the free space may go without being found in the layers, beside their bound, up to which the
	// sandbox may have files of its own on the disk. Other programs write to it too.
	unseenMost = 1 << 30
)

// An overweight is why layers take too much.
type overweight string

func (o overweight) Error() string { return string(o) }

// Watch calls over, with the reason, if the layers come to take more than most bytes on their disk, or to have more files
// than a proposal can have, or if that cannot be told: because a directory cannot be read or is too deep, measuring takes
// too long, or the free space goes and it is not found in the layers, as with files that have no name any more. It returns
// then, or when ctx ends. A layer is measured again and again, so it may take more for a moment.
func (l *Layers) Watch(ctx context.Context, most int64, over func(why string)) {
	s := &scale{l: l, dirs: l.Dirs(), most: most}
	var err error
	if s.free, _, err = l.v.space(l.v.dir); err != nil {
		over(noSpace(err))
		return
	}
	for pause := watchPause; ; {
		start := time.Now()
		for left := pause; left > 0; left = pause - time.Since(start) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(left, watchPause)):
			}
			if s.told(s.check(), over) {
				return
			}
		}
		start = time.Now()
		err := s.measure(ctx)
		if ctx.Err() != nil || s.told(err, over) {
			return
		}
		pause = min(max(watchPause, 10*time.Since(start)), watchRest)
	}
}

// A scale measures layers.
type scale struct {
	l      *Layers
	dirs   map[string]string
	most   int64
	free   int64 // on the disk, before the command
	known  int64 // bytes at the last measurement
	hidden bool  // it could not read all
}

// told calls over for the errors that are its reasons.
func (s *scale) told(err error, over func(why string)) bool {
	var why overweight
	if !errors.As(err, &why) {
		return false
	}
	over(string(why))
	return true
}

func noSpace(err error) string {
	return fmt.Sprintf("the free space of the disk of the layers cannot be told: %v", err)
}

// check compares the free space with what is known of the layers.
func (s *scale) check() error {
	free, _, err := s.l.v.space(s.l.v.dir)
	if err != nil {
		return overweight(noSpace(err))
	}
	if allowed := s.most + unseenMost; s.free-free-s.known > allowed {
		return overweight(fmt.Sprintf("more than %d MiB of the disk went, which are not found in what it changed", allowed>>20))
	}
	return nil
}

// measure measures all layers once.
func (s *scale) measure(ctx context.Context) error {
	start, last := time.Now(), time.Now()
	again := func() error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if time.Since(last) < watchPause {
			return nil
		}
		last = time.Now()
		if time.Since(start) > watchTime {
			return overweight("what it changed cannot be measured in time")
		}
		return s.check()
	}
	var sum weight
	limit := 4 * s.l.v.opts.Changes
	for _, dir := range s.dirs {
		for _, part := range []string{"upper", "work"} {
			w, err := weigh(filepath.Join(dir, part), limit, again)
			if err != nil {
				return err
			}
			sum.bytes, sum.files, sum.deep = sum.bytes+w.bytes, sum.files+w.files, sum.deep || w.deep
			sum.hidden = sum.hidden || w.hidden && part == "upper" // the kernel closes a directory of its own
		}
	}
	before := s.hidden
	s.known, s.hidden = sum.bytes, sum.hidden
	switch {
	case sum.bytes > s.most:
		return overweight(fmt.Sprintf("what it changed takes more than %d MiB", s.most>>20))
	case sum.files >= limit:
		return overweight(fmt.Sprintf("it made %d files or more", limit))
	case sum.deep:
		return overweight(fmt.Sprintf("what it changed cannot be measured: directories are in each other %d times or more", maxDepth))
	case sum.hidden && before:
		return overweight("what it changed cannot be measured: it keeps a directory that its owner may not read")
	}
	return nil
}

// maxDepth bounds how deep directories are measured.
const maxDepth = 512
