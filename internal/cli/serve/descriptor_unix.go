//go:build unix

package serve

import "syscall"

// descriptors is how many this process may have; zero is not known. Package os has
// raised it to what is allowed.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > 1<<30 {
		return 0
	}
	return int(l.Cur)
}
