// Package cgroup bounds what a sandbox may use of memory, processor, processes
// and disk bandwidth, with control groups of version 1 and 2.
//
// [Probe] finds out what this process may do: which hierarchies are mounted,
// where its own group is in each, and what it lacks. [Host.Create] makes a
// [Group] below the process's own group, [Group.Start] starts a child that is
// inside from its first instruction, and [Group.Remove] ends everything in it.
// Groups are only ever made below our own one, and only our own process is
// ever moved.
//
// Where no group can be made, a [Watchdog] samples the process tree from
// outside and kills what grows too large. It is weaker, and says so.
//
// Every start of a command goes through this package, so it does plain file
// operations, keeps no state between processes, and costs nothing to import.
//
// The guest cannot write to its groups: they must not be mounted writable
// inside. What the watchdog reads of the guest's processes is hostile.
package cgroup
