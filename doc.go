// Package paddock defines the types, interfaces and errors of Paddock, which runs the
// commands of AI agents in sandboxes. It has no behaviour: it uses only the standard
// library, does no I/O and keeps no state.
//
// # Overview
//
// A [Driver] makes sandboxes of one [Tier]. [Driver.Create] turns a [Spec] into a
// [Sandbox]: an isolated computer in which a command can run. [Sandbox.Start] starts a
// [Cmd] and returns a [Process]. The process ends with an [Exit] that says why.
// [Sandbox.FS] returns the files of the sandbox. [Sandbox.Dial] connects to a port that
// listens inside. [Sandbox.Remove] destroys the sandbox.
//
// Isolation tiers, wrappers around a tier, and the client of a Paddock server are all
// Drivers. Package drivertest tests the promises that all of them keep.
//
// # Contract
//
//  1. All methods are safe for concurrent use.
//  2. A context bounds the call, never its result: a process outlives the call that
//     started it, and the connection of that call.
//  3. A call that a tier cannot serve returns [Unsupported]. [Driver.Info] lists the
//     capabilities beforehand, and Create refuses a spec that needs another one. No
//     control is dropped silently: [Status] lists what is enforced, and how.
//  4. A timeout kills the command's whole process group. The sandbox stays usable, and
//     the exit names the timeout as its cause.
//  5. An [Exit] has a cause: code, signal, timeout, out of memory (with limit and peak),
//     killed by policy. An exit without a cause is a bug.
//  6. Ready means that a command has run inside, not only that a process was forked.
//  7. The zero value is the safe one: no network, no mounts, default limits (never "no
//     limit").
//  8. [Sandbox.Remove] leaves no process, mount, control group, network namespace, socket
//     or file behind, even if the process that made the sandbox was killed by signal 9.
//
// # Wrappers
//
// A wrapper is a Driver around a Driver, for example a pool, a quota or an action log.
// Find methods beyond this contract with [As], never with a type assertion, because a
// wrapper may surround the driver that has them.
//
// A wrapper whose methods may be bypassed has a method Unwrap, which returns the driver or
// sandbox inside it. Only a wrapper that merely observes may have one. A wrapper that
// hides, counts, limits, refuses or records anything has none, and As stops there. So the
// holder of a tenant's driver never reaches the driver that all tenants share. If such a
// wrapper forwards methods beyond the contract, it implements them itself, with its own
// checks, and only if the driver inside has them.
//
// # Words
//
// Other systems call a sandbox a container or instance. The host is the machine that
// Paddock runs on. The guest is the code inside a sandbox, and is hostile. A control is one
// mechanism that separates the two, for example a namespace, a system-call filter or a
// memory limit.
package paddock
