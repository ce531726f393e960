// Package drivertest checks the promises that every [paddock.Driver] makes: each law of package
// paddock, and each promise that follows from one, is a sentence with a test. It also holds the
// benchmarks that drivers share.
//
// A driver joins in about ten lines:
//
//	func open(state string) (paddock.Driver, error) {
//		return jail.New(jail.Options{State: state})
//	}
//
//	func TestMain(m *testing.M) { drivertest.Main(m, open) }
//
//	func TestPromises(t *testing.T) { drivertest.Run(t, drivertest.Harness{New: open}) }
//
//	func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }
//
// # What a driver need not do
//
// No promise is skipped silently. The suite does not expect a promise that depends on a capability or
// a control which [paddock.Info] does not claim. Instead it checks that the call and Create refuse
// whatever is not claimed. A promise that a driver cannot keep for another reason is listed in
// [Harness.Skip] with that reason. The suite fails if the driver nevertheless claims the capability
// that the promise depends on.
//
// # What the suite needs in a sandbox
//
// A POSIX shell and the usual small tools (cat, head, tail, env, id, ls, mv, rm, mkdir, mkfifo, seq,
// sleep, stty, yes). For actions beyond them (listen on a port, open a connection) the suite builds a
// static program and copies it in. Nothing leaves the machine: the only foreign address that it tries
// is in a range reserved for documentation.
package drivertest
