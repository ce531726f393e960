// Package actionlog records who did what to which sandbox. Its driver wraps another one. It
// records each call that changes something or returns contents, with the result, when the
// call has ended. docs/security/audit.md lists the actions. File contents, environments and
// input are never recorded.
//
// When the log can no longer be written, the driver refuses all these calls except the
// removal of a sandbox.
package actionlog
