package sqlite

import (
	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"
)

// bound sets how much memory the engines of this process have, all together:
// they share one allocator. It counts only where it was told to before the first
// of them started, which is what comes first here; later that is refused, and
// nothing more is needed.
func bound(bytes int64) {
	tls := libc.NewTLS()
	defer tls.Close()
	args := libc.NewVaList(int32(1))
	if args == 0 {
		return // without memory for this there is none for an engine
	}
	defer libc.Xfree(tls, args)
	engine.Xsqlite3_config(tls, engine.SQLITE_CONFIG_MEMSTATUS, args)
	engine.Xsqlite3_hard_heap_limit64(tls, bytes)
}
