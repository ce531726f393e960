package drivertest

import (
	"runtime/metrics"
	"syscall"
)

const sigKill = syscall.SIGKILL

// heap returns the bytes of live and not yet collected objects. Unlike
// runtime.ReadMemStats, it does not stop the world.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// mapped returns the bytes that count toward the runtime's memory limit.
func mapped() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
