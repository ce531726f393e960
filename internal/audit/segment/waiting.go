package segment

import (
	"strings"
	"time"
)

// Waiting returns the number of finished segments that are not in the bucket yet, and when the oldest of them was
// finished.
func (u *Uploader) Waiting() (n int, since time.Time, err error) {
	names, err := list(u.dir, ".")
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, part) {
			continue
		}
		n++
		if n > 1 {
			continue // oldest first
		}
		info, err := u.dir.Lstat(name)
		if err != nil {
			n--
			continue // it was uploaded meanwhile
		}
		since = info.ModTime()
	}
	return n, since, nil
}
