// Package pool keeps sandboxes ready, so that Create answers at once.
//
// # The story
//
// A [Pool] is a paddock.Driver around another. For each [Shelf] it makes a
// number of sandboxes ahead of time, with exactly the shelf's spec. A Create
// whose spec is the same takes one of them; every other goes to the driver,
// untouched. In the background the shelf is filled again.
//
// # What is the same
//
// Two specs are the same if all their fields are, however deep, where no
// elements and nil are one; the order of a list counts. Two fields stand out.
// The ID must be empty: a ready sandbox has one already. Labels may differ:
// they are changed by Update before anyone gets the sandbox. If that fails the
// sandbox is removed, and the driver makes one.
//
// A ready sandbox was made earlier, and of the host as it was then: what is
// replaced on the host meanwhile (the directory of a mount, a denied file) is
// inside as it was. That is so of any sandbox; here it begins before Create.
//
// # One sandbox, one caller
//
// Nothing of one caller is ever seen by the next. A sandbox is handed out once
// and never comes back. Until then only the pool knows it: its ID is random,
// Open does not find it, List leaves it out, and no command of anybody's has
// run in it but the shelf's own Warm. For this the driver must be the pool's alone.
//
// # After a crash
//
// Ephemeral sandboxes go with their process. Those that outlive it carry a
// [Label] with the pool's mark for as long as they are ready. Handing one out is
// one Update of its labels, which takes the mark away and sets the caller's at
// once. So whatever carries the mark was never handed out, whenever the process
// died, and [Clean] removes it; what does not is its caller's. Where the Update
// says that it failed the sandbox is removed, whether it did or not, and nobody
// gets it. New refuses a shelf of such sandboxes without a mark.
//
// # Time
//
// For its caller a sandbox begins when it is handed out: that is its
// Status.Created, and its Usage.Wall counts from there. So a bill or a lease
// does not begin before Create, List is in the order of the Creates, and no one
// can tell whether a sandbox was ready. Processor time and memory stay as
// measured: they hold the cost of the start, as without a pool.
// Limits.Lifetime bounds each command from its own start, so waiting on a shelf
// uses nothing of it.
//
// # How many
//
// A shelf has its Size at least. Each Create that finds it empty has one more
// kept, up to Most; each minute without one less, of which the oldest goes. What
// is older than the TTL is handed out to nobody: it is removed, and replaced.
// [Pool.Counts] tells how that went.
//
// # Order
//
// One goroutine removes what is not usable and fills the shelves, one sandbox
// at a time, the emptiest shelf first. Of a shelf that was full it waits a
// moment, so that the first command in what was taken has the machine. It begins no sandbox while a Create
// waits for the driver, which has the machine first; if Creates never cease it
// makes one each second all the same, or the shelves would stay empty where
// they are needed most. What it has begun it finishes: a Create that finds the
// shelf empty does not wait for it, but asks the driver.
//
// A sandbox that cannot be made is tried again, after pauses that grow from a
// second to a minute, ten times. Then, or at once where trying again cannot
// help, the shelf is given up: Creates go to the driver, and the first that
// succeeds there with the shelf's spec shows that it is worth trying again.
package pool
