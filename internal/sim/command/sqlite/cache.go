package sqlite

import (
	"errors"
	"reflect"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"
)

// The engine is built so that the caches of all connections are one group (SQLITE_ENABLE_MEMORY_MANAGEMENT): a connection
// that needs a page takes one that another has cached, and one that gives back what it has cached gives back what all
// have. So one sandbox would slow down another, see what it does, and use pages that it paid for. The engine can also
// give each cache a group of its own, but decides that when it is built. The choice is a variable of its own, which
// stands in the group.

var errShared = errors.New("the caches of the engine cannot be kept apart")

// part has the engine keep the caches apart that are made from now on.
func (a *allocator) part() error {
	group, _, ok := a.group()
	if !ok {
		return errShared
	}
	choice, ok := reflect.TypeFor[engine.TPCacheGlobal]().FieldByName("FseparateCache")
	if !ok || choice.Type != reflect.TypeFor[int32]() || libc.AtomicLoadPInt32(group+choice.Offset) != 0 {
		return errShared
	}
	libc.AtomicStorePInt32(group+choice.Offset, 1)
	if group, cache, ok := a.group(); !ok || group != cache+reflect.TypeFor[engine.TPCache1]().Size() {
		return errShared
	}
	return nil
}

// group makes a cache, and tells where its group and it were. Where the caches have one group, that is the beginning of
// the engine's variable.
func (a *allocator) group() (group, cache uintptr, ok bool) {
	f, found := reflect.TypeFor[engine.TPCache1]().FieldByName("FpGroup")
	whole := reflect.TypeFor[engine.TPCacheGlobal]().Field(0)
	if !found || f.Type.Kind() != reflect.Uintptr || whole.Name != "Fgrp" || a.pages.FxCreate == 0 || a.pages.FxDestroy == 0 {
		return 0, 0, false
	}
	var create func(tls *libc.TLS, page, extra, purgeable int32) uintptr
	var destroy func(tls *libc.TLS, cache uintptr)
	point(&create, a.pages.FxCreate)
	point(&destroy, a.pages.FxDestroy)
	tls := libc.NewTLS()
	defer tls.Close()
	cache = create(tls, 4096, 256, 0)
	if cache == 0 {
		return 0, 0, false
	}
	defer destroy(tls, cache)
	return libc.AtomicLoadPUintptr(cache + f.Offset), cache, true
}

// point makes the function that f points to one of C code: the reverse of address.
func point(f any, at uintptr) {
	reflect.NewAt(reflect.TypeFor[uintptr](), reflect.ValueOf(f).UnsafePointer()).Elem().SetUint(uint64(at))
}
