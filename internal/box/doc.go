// Package box makes sandboxes from namespaces, control groups, Landlock and seccomp on the
// host's own kernel, for the tiers that build on them. It makes a box by executing the
// guest program in new namespaces. Package boxinit then runs inside. This needs no helper
// program, no set-id bit and no daemon, for root and for any other user.
//
// In a tier with a guest kernel ([boxinit.GuestKernel]), commands do not run on the host's
// kernel. The box's init starts the guest kernel inside the box, and commands run on that
// kernel.
//
// The owner of a box is one process on the host. It made the namespaces and holds the
// control descriptor and the control group, and the box dies with it. The owner of an
// ephemeral sandbox is the process that uses the [Driver]. Each other sandbox has a keeper
// of its own as the owner, which a later driver finds by its socket in the state directory.
package box
