// Package hostwatch makes, in the sentry, the inotify events for what the host changes in mounts. gVisor itself
// makes events only for what its own commands change.
//
// The sentry reports each file and directory of a mount that a command watches to the box's init
// ([boxinit.HostWatch]), which watches it on the host. What the host then reports becomes an event of the
// command's watch, as if the change had been made inside. A watch of a command is complete when it is
// watched on the host, so no later change is missed.
//
// The host also reports what commands change themselves, because the sentry makes such a change on the host.
// These reports are left out: the sentry has made the events already. The sink has a watch of its own on
// every watched file, from which it learns what those were.
package hostwatch
