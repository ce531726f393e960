// Package measure turns what the recorder of steps tells into what a monitor judges, and counts files of the host. It holds no
// state, and follows no link of a sandbox.
package measure
