package step

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
)

// A step that goes on takes room in the journal before it writes, so that all open steps together keep within its size.
// A file beside the log says how much it has. Both go away when the step has ended, and so do those of a dead recorder.

const (
	roomSuffix = ".room"
	roomPiece  = 64 << 20 // is taken at once at most, if less is needed
	logFree    = 1 << 20  // bytes of a log for which no room is taken
)

func roomPath(n int64) string { return logPath(n) + roomSuffix }

// reserved returns how much room steps have that have not ended.
func (j *Journal) reserved() (sum int64, err error) {
	all, err := j.numbers(dirLogs)
	for _, n := range all {
		sum += j.count(roomPath(n))
	}
	return sum, err
}

// occupied is what Trim counts of the room of open steps. They cannot push out all steps that have ended.
func (j *Journal) occupied() (int64, error) {
	n, err := j.reserved()
	return min(n, j.opts.Size/2), err
}

// take takes room for what is needed, or somewhat more, and returns how much it got: nothing if that is too little.
func (r *Recorder) take(need int64) (got int64) {
	err := r.j.alone(context.Background(), func() error {
		all, err := r.j.reserved()
		if err != nil {
			return err
		}
		free := r.j.opts.Size - r.j.count(fileUsage) - all
		if r.head.Life != "" {
			mine, err := r.ours()
			if err != nil {
				return err
			}
			free = min(free, r.j.opts.Size/2-mine)
		}
		free = max(free, r.sure-r.granted)
		n := min(max(need, min(r.granted, roomPiece)), free)
		if n < need {
			return nil
		}
		if err := r.j.setCount(roomPath(r.number), r.granted+n); err != nil {
			return err
		}
		r.granted += n
		got = n
		return nil
	})
	if err != nil {
		return 0 // as if the journal were full
	}
	return got
}

// ours returns how much room the open steps of the same sandbox have. They may have half of the journal together, so that the
// steps of others can go on.
func (r *Recorder) ours() (sum int64, err error) {
	all, err := r.j.numbers(dirLogs)
	if r.lives == nil {
		r.lives = map[int64]string{r.number: r.head.Life}
	}
	for _, n := range all {
		room := r.j.count(roomPath(n))
		if room == 0 {
			continue
		}
		life, known := r.lives[n]
		if !known {
			life = r.j.lifeOf(n)
			r.lives[n] = life
		}
		if life == r.head.Life {
			sum += room
		}
	}
	return sum, err
}

// lifeOf returns which sandbox an open step is of, or nothing if that is not known.
func (j *Journal) lifeOf(n int64) (life string) {
	f, err := j.root.Open(logPath(n))
	if err != nil {
		return ""
	}
	defer f.Close()
	enough := errors.New("the rest is not needed")
	_ = readLog(f, func(h *header) error {
		life = h.Life
		return enough
	}, func(*entry) error { return enough })
	return life
}

// roomy reports whether there is room for so many bytes of contents.
func (r *Recorder) roomy(n int64) bool {
	if n > r.room-r.fresh {
		r.room += r.take(n - (r.room - r.fresh))
	}
	return n <= r.room-r.fresh
}

// release gives back the room of a step that has ended.
func (j *Journal) release(n int64) error {
	if err := j.root.Remove(roomPath(n)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// victims selects records to remove until so many bytes are free: the oldest of the sandbox that has most, again and
// again, so that one sandbox does not push out the steps of others.
func (j *Journal) victims(list []Record, over int64) (gone []int64) {
	size := make([]int64, len(list))
	sums, next := map[string]int64{}, map[string][]int{}
	for i := range list {
		size[i] = list[i].Bytes
		if f, err := j.root.Lstat(recordPath(list[i].Number)); err == nil {
			size[i] += f.Size()
		}
		life := list[i].Life
		sums[life] += size[i]
		next[life] = append(next[life], i)
	}
	for over > 0 && len(next) > 0 {
		most, found := "", false
		for life := range next {
			if !found || sums[life] > sums[most] || sums[life] == sums[most] && next[life][0] < next[most][0] {
				most, found = life, true
			}
		}
		i := next[most][0]
		if next[most] = next[most][1:]; len(next[most]) == 0 {
			delete(next, most)
		}
		sums[most] -= size[i]
		over -= size[i]
		gone = append(gone, list[i].Number)
	}
	slices.Sort(gone)
	return gone
}

// stepOfFile returns the number of the step of a pack or of a room.
func stepOfFile(name string) (log string, ok bool) {
	for _, suffix := range []string{packSuffix, roomSuffix} {
		if n := len(name) - len(suffix); n > 0 && name[n:] == suffix {
			_, err := strconv.ParseInt(name[:n], 10, 64)
			return name[:n], err == nil
		}
	}
	return "", false
}
