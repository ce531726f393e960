// Package admission refuses sandboxes that the machine has no room for, in words.
//
// # The story
//
// A [Driver] is a paddock.Driver around another. Before a Create reaches that it
// has to pass three things, each of which is paddock.Exhausted where it does not:
//
//   - A claim. The sandboxes are counted, and the limits of their memory summed,
//     those that are being made included. The sum may be the machine's memory,
//     times [Options.Overcommit]. The machine's memory is what the control groups
//     of this process leave of it.
//   - A line. Few sandboxes are made at once, or all of them would be slow. Who
//     has a claim waits in line, for as long as its context allows. The line has
//     an end, and whoever comes after that is refused. Where callers have keys,
//     such as tenants, these take turns, and none has more than half of the line.
//   - A look. So much memory and disk as is reserved must be left, as the machine
//     itself tells it at that moment: limits do not tell what else runs there.
//
// A larger limit by Update needs a claim too. Remove gives it back. What went by
// itself is found before anyone is refused: then the driver is asked what is
// there, though not more than once a second.
//
// # What it does not count
//
// A paused sandbox counts as one that runs, since it may be resumed at any time.
// Sandboxes that a pool below holds ready are counted where [Options.Besides]
// tells of them; one that is handed out counts twice until the pool has noted it,
// and a pool that fills its shelves is not held up.
package admission
