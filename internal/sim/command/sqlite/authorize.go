package sqlite

import (
	"reflect"
	"strconv"
	"strings"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"
)

// A pragma reaches what is not of its database: where temporary files are and that there are any, how much memory all
// engines of the process have, how long a database may be. So the engine asks for each one that it has read, by its own
// parser: a second one would be another reading of the same text.

// An authorizer is what the engine asks before it does something that a statement says.
type authorizer func(tls *libc.TLS, _ uintptr, action int32, a, b, schema, by uintptr) int32

// guard has the engine ask about pragmas. The connection keeps it as long as the console does.
func (c *console) guard() error {
	return c.handle(func(tls *libc.TLS, db uintptr) error {
		f := authorizer(func(_ *libc.TLS, _ uintptr, action int32, a, b, _, _ uintptr) int32 {
			if action != engine.SQLITE_PRAGMA {
				return engine.SQLITE_OK
			}
			return judge(strings.ToLower(libc.GoString(a)), libc.GoString(b), b != 0, c.page)
		})
		c.authorizer = &f
		if engine.Xsqlite3_set_authorizer(tls, db, address(c.authorizer), 0) != engine.SQLITE_OK {
			return errHandle
		}
		return nil
	})
}

// What a pragma may do.
type permit int

const (
	unknown permit = iota // the engine does nothing, as with pragmas it does not know
	free
	readable // with a value, the engine does nothing
	sized    // a value may be as large as that by which the database is bounded
	forbidden
)

// permitted tells it by names. One that comes with another engine is unknown.
func permitted(name string) permit {
	switch name {
	case "analysis_limit", "application_id", "auto_vacuum", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "case_sensitive_like", "cell_size_check",
		"checkpoint_fullfsync", "collation_list", "compile_options", "count_changes", "data_version", "database_list", "default_cache_size", "defer_foreign_keys",
		"empty_result_callbacks", "encoding", "foreign_key_check", "foreign_key_list", "foreign_keys", "freelist_count", "full_column_names",
		"fullfsync", "function_list", "ignore_check_constraints", "incremental_vacuum", "index_info", "index_list", "index_xinfo",
		"integrity_check", "journal_mode", "journal_size_limit", "legacy_alter_table", "locking_mode", "module_list", "optimize",
		"page_count", "pragma_list", "query_only", "quick_check", "read_uncommitted", "recursive_triggers", "reverse_unordered_selects",
		"schema_version", "secure_delete", "short_column_names", "shrink_memory", "synchronous", "table_info", "table_list", "table_xinfo", "trusted_schema",
		"user_version", "wal_autocheckpoint", "wal_checkpoint", "writable_schema":
		return free
	case "temp_store", "mmap_size":
		return readable
	case "page_size":
		return sized
	case "temp_store_directory", "data_store_directory", "hard_heap_limit", "soft_heap_limit", "max_page_count", "threads":
		return forbidden
	}
	return unknown
}

// judge is the answer about one, of a database that is bounded as so many pages of this size.
func judge(name, value string, given bool, page int64) int32 {
	switch permitted(name) {
	case free:
		return engine.SQLITE_OK
	case readable:
		if !given {
			return engine.SQLITE_OK
		}
	case sized:
		if n, err := strconv.ParseInt(value, 10, 32); !given || err == nil && n <= page {
			return engine.SQLITE_OK
		}
		return engine.SQLITE_DENY
	case forbidden:
		return engine.SQLITE_DENY
	}
	return engine.SQLITE_IGNORE
}

// handle calls do with the engine's own handle of the connection, of which the driver has no method.
func (c *console) handle(do func(tls *libc.TLS, db uintptr) error) error {
	return c.conn.Raw(func(x any) error {
		v := reflect.ValueOf(x)
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			return errHandle
		}
		db := v.Elem().FieldByName("db")
		if !db.IsValid() || db.Kind() != reflect.Uintptr || db.Uint() == 0 {
			return errHandle
		}
		tls := libc.NewTLS()
		defer tls.Close()
		return do(tls, uintptr(db.Uint()))
	})
}
