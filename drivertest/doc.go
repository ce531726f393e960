// Package drivertest states what every [paddock.Driver] promises, and checks
// it: each law of package paddock, and each promise that follows from one, is
// a sentence with a test. It also holds the benchmarks that drivers share.
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
// Nothing is skipped in silence. A promise that rests on a capability or a
// control which [paddock.Info] does not claim is not expected; instead the
// suite checks that what is not claimed is refused, by the call and by Create.
// A promise that a driver cannot keep for another reason is listed in
// [Harness.Skip] with that reason, and the suite fails if the capability that
// the promise rests on is claimed all the same.
//
// # What the suite needs in a sandbox
//
// A POSIX shell and the usual small tools (cat, head, tail, env, id, ls, mv,
// rm, mkdir, mkfifo, seq, sleep, stty, yes). What those cannot do (listen on a port, open a
// connection) is done by a static program that the suite builds and copies
// in. Nothing leaves the machine: the one foreign address that it tries is of
// a range reserved for documentation.
package drivertest
