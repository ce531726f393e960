// Package verdict follows the monitors of a driver's sandboxes, and tells somebody each of their verdicts.
//
// The monitor of a sandbox is in the process that owns the sandbox, which may not be this one. It keeps its newest verdicts for
// whoever follows it. So this driver has a goroutine for each sandbox with a monitor: for those that it finds when it is opened,
// and those that are made by it. A verdict is told before the next ones are asked for, and then is not kept any more: a server
// that starts anew tells those of the meantime, and, if it was killed, some twice.
//
// The driver changes no call, and has an Unwrap.
package verdict
