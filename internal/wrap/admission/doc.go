// Package admission refuses sandboxes that the machine has no room for.
//
// # The story
//
// A [Driver] is a paddock.Driver around another. A Create passes three checks before it
// reaches that driver. Each of them fails with paddock.Exhausted:
//
//   - A claim. The driver counts the sandboxes and adds up the memory of the host that each
//     can take, as paddock.HostMemory tells it, with those that are being created. That can
//     be more than the memory limit: on some tiers the files are memory beside it. The sum
//     must not exceed the machine's memory times [Options.Overcommit]. The machine's memory
//     is what the control groups of this process leave.
//   - A queue. Few sandboxes are created at once, because more would all be slow. A Create
//     with a claim waits for as long as its context allows. The queue has a maximum
//     length. Where callers have keys, such as tenants, the keys take turns, and no key
//     has more than half of the queue.
//   - A measurement. The machine must have the reserved memory and disk free at that
//     moment, because limits do not show what else runs there.
//
// An Update to a larger limit needs a claim too. Remove returns it. Before the driver
// refuses a claim, it lists the sandboxes to find those that ended by themselves, at most
// once a second.
//
// # Limits of the count
//
// A paused sandbox counts as running, because it may be resumed at any time.
// [Options.Besides] adds the ready sandboxes of a pool below. A sandbox that the pool
// hands out counts twice until the pool has noted it. A pool that refills its shelves is
// not held up.
package admission
