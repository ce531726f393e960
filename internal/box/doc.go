// Package box makes sandboxes of namespaces, control groups, Landlock and
// seccomp on the host's own kernel, for the tiers that stand on them. A box is
// made by executing the guest program in new namespaces; package boxinit is what
// then runs inside. No helper program, no set-id bit and no daemon is needed,
// as root or as anybody else.
//
// In a tier with a [Kernel] of its own, commands do not run on the host's: the
// box's init starts that kernel, with the box's walls around it, and commands
// run on it.
//
// The owner of a box is one process on the host: it made the namespaces, holds
// the control descriptor and the control group, and the box dies with it. For
// an ephemeral sandbox that is the process that uses the [Driver]. For any
// other it is a keeper, one for each sandbox, which a later driver finds by
// its socket in the state directory.
package box
