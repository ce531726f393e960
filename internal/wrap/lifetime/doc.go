// Package lifetime gives sandboxes lifetimes.
//
// # The story
//
// A [Driver] is a paddock.Driver around another. Each sandbox has [Terms]: a deadline, the
// idle times after which it is paused or removed, a lease that must be renewed, and
// whether a call wakes it. The zero Terms set nothing: the sandbox stays until it is
// removed.
//
// # Activity
//
// These calls are activity: Start, Attach, Dial, input, signals, files, Update and
// Snapshot. So is what stays open after a call: a file, a watcher, a connection, and a
// running process. With [Terms.IgnoreProcesses] a process counts only while somebody is
// attached to its output. Status, Processes, List and Open are not activity. Idle time
// begins when the last activity ends.
//
// The driver asks for processes only when the idle time is otherwise over. A process that
// still runs is activity at that moment; an ended process is activity of its end.
//
// # Pause and wake
//
// With [Terms.Wake] the next activity resumes a sandbox that was paused for being idle. It
// is resumed once for all callers, and they wait. Input to a process wakes the sandbox too.
// No call wakes a sandbox that a person, a deadline or an expired lease paused. Such a
// call is a paddock.Conflict, whose text names the remedy: Resume, [Driver.Extend] or
// [Driver.Renew].
//
// # Removal
//
// The driver records a due action before it carries the action out, with the version of
// the record that it knew. So of two servers with one store one acts, and a deadline that
// another server moved is not carried out. From then on calls are refused. A failed action
// is tried again, after pauses that grow from a second to a minute; Status.Reason and the
// log give the cause. For one day, calls for a removed sandbox say that and why it was
// removed.
//
// A sandbox can make its pause fail. So a failed pause delays no removal, and a pause at the
// end of a sandbox's time that fails for an hour becomes a removal. While it fails by the
// host, which an error of Pause says by a method OfHost() bool, that hour stands still, and a
// day of its own runs, after which the sandbox is removed too. Both stand still while the
// driver does not open the sandbox, because then it could not be removed either.
//
// Code inside can also make a pause or a resume hang. So one that somebody asked for ends
// when an end is due, and is a paddock.Conflict. What a sandbox answers never means that it
// is gone; only an Open that is paddock.NotFound does.
//
// # Clocks
//
// While the driver runs, the monotonic clock counts. A jump of the wall clock changes no
// [Terms.Lifetime], [Terms.Timeout], idle time or lease; the record follows the wall
// clock. Time that the machine slept does not count. A [Terms.Deadline] is wall-clock
// time. A jump forward brings it nearer, but never within a grace period. A jump back
// moves it no later than the monotonic clock says.
//
// After a restart only the wall clock is left. Whatever became due while no server ran
// waits for a grace period, in which an operator can correct the clock. The driver does
// not believe a clock that is earlier than the last write of a record; the time that was
// left then is left now. A lease starts again in full, because nobody could renew it. So
// does the idle time of a running sandbox; that of a paused one goes on.
//
// # Wrappers
//
// A wrapper around a Driver that passes terms on is a [Lessor] too, with checks of its
// own. [paddock.As] finds the Lessor of a driver.
//
// # Goroutines
//
// One goroutine holds the queue of due actions for all sandboxes. A few others carry the
// actions out, so that a call that hangs delays few sandboxes. With [Options.Key] the keys
// take turns, so that the sandboxes of one delay no others. Close ends all of them.
package lifetime
