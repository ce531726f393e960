package main

import (
	"fmt"
	"runtime"
	"syscall"
)

// size prints what the kernel's calls tell of the machine: its memory in bytes, or the number of its
// processors.
func size(kind string) error {
	switch kind {
	case "memory":
		var si syscall.Sysinfo_t
		if err := syscall.Sysinfo(&si); err != nil {
			return err
		}
		fmt.Println(si.Totalram * uint64(si.Unit))
		return nil
	case "processors":
		fmt.Println(runtime.NumCPU()) // by sched_getaffinity
		return nil
	}
	return fmt.Errorf("no size %q", kind)
}
