// Package cgroup limits the memory, CPU time, processes and disk bandwidth of a sandbox with control
// groups of version 1 and 2.
//
// [Probe] reports what this process may do: the mounted hierarchies, its own group in each, and the
// missing rights. [Host.Create] makes a [Group] below the process's own group. [Group.Start] starts a
// child that is in the group from its first instruction. [Group.Remove] ends every process in the
// group. Groups are only made below the caller's own group, or in the one that a unit beside a service holds
// for it, and only the caller's own process is ever moved.
//
// Where no group can be made, a [Watchdog] samples the process tree from outside and kills processes
// that exceed a limit. It is weaker, and its description says so.
//
// Every start of a command goes through this package. It therefore uses plain file operations, keeps
// no state between processes, and costs nothing to import.
//
// The guest cannot write to its groups: they must not be mounted writable inside. The watchdog reads
// data of the guest's processes, which is hostile.
package cgroup
