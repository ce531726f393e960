package guestinit

import "syscall"

// Full reports whether a file system is as good as full, and its size in bytes. A program that finds no
// room for its next piece leaves a little.
func Full(dir string) (size int64, full bool) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(dir, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || st.Blocks == 0 || st.Bsize <= 0 {
			return 0, false
		}
		break
	}
	const part = 256
	return int64(st.Blocks) * st.Bsize, st.Bavail <= st.Blocks/part || st.Files > 0 && st.Ffree == 0
}
