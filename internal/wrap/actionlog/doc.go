// Package actionlog records who did what to which sandbox: a [Driver] is a
// paddock.Driver around another, and tells a sink every call that changes
// something or that lets something out, when it has answered, with how it went.
// docs/security/audit.md lists them. Contents, environments and what is typed are never
// recorded.
//
// Deny by default: once nothing can be recorded any more, every such call is
// refused, but for the removal of sandboxes.
package actionlog
