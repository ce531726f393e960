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
		free := max(r.j.opts.Size-r.j.count(fileUsage)-all, r.sure-r.granted)
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
