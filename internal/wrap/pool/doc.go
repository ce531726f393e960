// Package pool keeps sandboxes ready, so that Create returns at once.
//
// # The story
//
// A [Pool] is a paddock.Driver around another. For each [Shelf] it creates a number of
// sandboxes ahead of time, with the shelf's spec. A Create with an equal spec takes one of
// them. Every other Create goes to the driver unchanged. The pool refills its shelves in
// the background.
//
// # Equal specs
//
// Two specs are equal if all their fields are, at any depth. An empty list equals nil; the
// order of a list counts. Two fields are special. The ID must be empty, because a ready
// sandbox already has one. Labels may differ, because Update changes them before the
// caller gets the sandbox. If Update fails, the pool removes the sandbox and the driver
// creates one.
//
// A ready sandbox shows the host as it was when the sandbox was created. If a mounted
// directory or a denied file is replaced on the host later, the sandbox keeps the old one.
// The same holds for any sandbox; here the time begins before Create.
//
// # One sandbox, one caller
//
// No caller sees anything of another. The pool hands out each sandbox once and takes none
// back. Before that only the pool knows the sandbox: its ID is random, Open does not find
// it, List leaves it out, and it has run no command but the shelf's Warm. So the driver
// must belong to the pool alone.
//
// # After a crash
//
// Ephemeral sandboxes end with their process. Other ready sandboxes carry a [Label] with
// the pool's mark. One Update of the labels hands a sandbox out: it removes the mark and
// sets the caller's labels. So a sandbox with the mark was never handed out, whenever the
// process died, and [Clean] removes it. A sandbox without the mark belongs to its caller.
// Where the Update fails, the pool removes the sandbox, whether or not the change was
// made. New refuses a shelf of sandboxes that outlive the process without a mark.
//
// # Time
//
// For its caller a sandbox begins when the pool hands it out: Status.Created is that
// moment, and Usage.Wall counts from it. So no bill and no lease begins before Create,
// List is in the order of the Creates, and no caller can tell whether a sandbox was ready.
// Processor time and memory include the start, as they do without a pool.
// Limits.Lifetime counts from the start of each command, so time on a shelf uses none of
// it.
//
// # Size
//
// A shelf holds at least Size sandboxes. Each Create that finds it empty raises the target
// by one, up to Most. Each minute without such a Create lowers it by one and removes the
// oldest sandbox. The pool replaces sandboxes that are older than the TTL. [Pool.Counts]
// returns hits, misses and failures.
//
// # Refill
//
// One goroutine removes unusable sandboxes and fills the shelves, one sandbox at a time,
// the emptiest shelf first. After a full shelf handed out a sandbox, the refill waits a
// moment, so that the first command does not compete with it. It starts no sandbox while a
// Create waits for the driver. If Creates never cease it still starts one each second,
// because empty shelves matter most then. A Create that finds its shelf empty does not
// wait for the refill, but goes to the driver.
//
// A failed creation is tried again ten times, after pauses that grow from a second to a
// minute. Then the pool gives the shelf up, or at once where another try cannot help.
// Creates go to the driver. The first one that succeeds with the shelf's spec makes the
// pool try again.
package pool
