// Package paddock is the vocabulary of Paddock, which gives every agent a
// computer of its own. It holds types, interfaces and errors, and no
// behaviour: standard library only, no I/O, no state.
//
// # The story
//
// A [Driver] makes sandboxes of one [Tier]. [Driver.Create] turns a [Spec]
// into a [Sandbox]: an isolated computer in which a command can run. The
// sandbox starts a [Cmd] as a [Process], which ends with an [Exit] that says
// why. Its files are reached by its [FS], a port that listens inside by
// [Sandbox.Dial]. [Sandbox.Remove] destroys it.
//
// Isolation tiers, wrappers around a tier, the client of a Paddock server and
// a cluster are all Drivers. Package drivertest states what all of them keep.
//
// # The laws
//
//  1. All methods are safe for many goroutines at once.
//  2. A context bounds the call, never the thing: a process outlives the call
//     that started it, and the connection that the call came over.
//  3. What a tier cannot do answers [Unsupported]. [Driver.Info] says so
//     beforehand, and Create refuses a spec that asks for it. No control is
//     ever dropped silently: [Status] lists what is enforced, and how.
//  4. A timeout kills the command's whole process group. The sandbox stays
//     usable, and the exit says why.
//  5. An [Exit] tells its cause: code, signal, timed out, out of memory (with
//     limit and peak), killed by policy. A dead run without a reason is a bug.
//  6. Ready means that a command has run inside, not that a process was forked.
//  7. The zero value is the safe one: no network, no mounts, default limits
//     (never "no limit").
//  8. [Sandbox.Remove] leaves no process, mount, control group, network
//     namespace, socket or file behind, also after kill -9 of whoever made the
//     sandbox.
//
// # Wrappers
//
// A wrapper is a Driver around a Driver: a pool, a quota, a record of actions. What a
// driver has beyond this contract is found with [As], never with a type assertion,
// because a wrapper may stand around it.
//
// A wrapper whose calls may be passed by has a method Unwrap, which returns the
// driver, or the sandbox, inside it. Only a wrapper that observes may have one. A
// wrapper that hides, counts, bounds, refuses or records anything has none, and As
// stops there: whoever holds a tenant's driver never reaches the driver that all
// tenants share. Where such a wrapper passes on more than the contract, it has the
// methods itself, with its own checks, and only where the driver inside has them.
//
// # Words
//
// A sandbox is what others call a box, container or instance. The host is the
// machine that Paddock runs on; the guest is what runs inside a sandbox and is
// hostile. A control is one thing that stands between the two (a namespace, a
// system-call filter, a memory limit).
package paddock
