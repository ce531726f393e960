package linux

// The bits of st_mode: a file's type, and the bits beside its permissions.
const (
	S_IFMT   = 0o170000
	S_IFIFO  = 0o10000
	S_IFCHR  = 0o20000
	S_IFDIR  = 0o40000
	S_IFBLK  = 0o60000
	S_IFREG  = 0o100000
	S_IFLNK  = 0o120000
	S_IFSOCK = 0o140000
	S_ISUID  = 0o4000
	S_ISGID  = 0o2000
	S_ISVTX  = 0o1000
)

// The flags of open.
const (
	O_RDONLY    = 0o0
	O_WRONLY    = 0o1
	O_RDWR      = 0o2
	O_ACCMODE   = 0o3
	O_CREAT     = 0o100
	O_EXCL      = 0o200
	O_TRUNC     = 0o1000
	O_APPEND    = 0o2000
	O_NONBLOCK  = 0o4000
	O_DIRECTORY = 0o200000
	O_NOFOLLOW  = 0o400000
	O_CLOEXEC   = 0o2000000
)
