package drivertest

import (
	"runtime/metrics"
	"syscall"
)

const sigKill = syscall.SIGKILL

// heap gives the bytes of live and not yet collected objects. Unlike
// runtime.ReadMemStats it stops nothing.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// mapped gives the bytes that the runtime's limit of memory counts.
func mapped() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
