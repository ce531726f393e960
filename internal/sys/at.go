package sys

// A FileStat has the attributes of a file.
type FileStat struct {
	Dev, Ino     uint64
	Links        uint64 // names that it has
	Mode         uint32 // type and permission bits, as in st_mode
	Size         int64
	ModTime      int64 // nanoseconds since 1970
	UID, GID     uint32
	Major, Minor uint32 // of a device
}
