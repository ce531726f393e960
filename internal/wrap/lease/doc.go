// Package lease gives sandboxes lifetimes.
//
// # The story
//
// A [Driver] is a paddock.Driver around another. Each sandbox has [Terms]: when
// it ends, after how much idle time it is paused or removed, whether someone
// has to say again and again that it is still wanted, and whether a call wakes
// it. The zero Terms ask for nothing: the sandbox stays until it is removed.
//
// # What is activity
//
// A call that reaches in is: Start, Attach, Dial, input, signals, files, Update
// and Snapshot. So is what stays open after the call: a file, a watcher, a
// connection, and a process that runs (with [Terms.IgnoreProcesses] only one
// whose output someone is attached to). Looking from outside is not: Status,
// Processes, List and Open. Idle time begins when the last of it is over.
//
// Processes are asked for only when the idle time is otherwise over. One that
// runs then counts as activity of that moment, one that ended as activity of
// its end.
//
// # What pauses and wakes
//
// A sandbox that was paused for being idle is resumed by the next call that
// reaches in, if [Terms.Wake] says so: once, however many callers there are, and
// they wait for it. Input to a process wakes too. What a person paused, a
// deadline or a lease that was not renewed is not woken: a call is a
// paddock.Conflict, which says how to go on. That is Resume, [Driver.Extend]
// and [Driver.Renew], in that order.
//
// # How it ends
//
// What is due is written down before it is done, with the version of the record
// that was known. So of two servers with one store one does it, and a deadline
// that another has moved is not carried out. From then on calls are refused.
// What fails is tried again, after pauses that grow from a second to a minute;
// Status.Reason and the log tell why. For a day later calls are told in words
// that, and why, the sandbox was removed.
//
// # Clocks
//
// While the driver lives the monotonic clock counts. What the wall clock does
// changes nothing of a [Terms.Lifetime], a [Terms.Timeout], and of idle times and leases: the
// record follows the wall clock. A machine that slept has used up nothing of
// them. A [Terms.Deadline] is by the wall clock: where that jumps forward it
// comes sooner, but not before a grace is over; where it jumps back it comes no
// later than the monotonic clock says.
//
// After a restart the wall clock has to do. What became due while nobody looked
// ends when a grace is over, so that a wrong clock can be set right meanwhile;
// then it counts anew. A clock that stands before the moment when the record was
// written is not believed: what was left then is left now. A lease has all of
// its time again, since nobody could renew it; the idle time of a sandbox that
// runs begins anew, and that of a paused one goes on.
//
// # Wrappers
//
// A wrapper around a Driver that passes terms on is a [Lessor] too, with checks of its
// own. [paddock.As] finds the Lessor of a driver.
//
// # Order
//
// One goroutine knows what is due next of thousands of sandboxes. What is to be
// done takes turns of a few others, so that a driver that hangs delays few.
// Close ends all of them.
package lease
