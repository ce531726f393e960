// Package call tells observers of the calls of a driver: that one begins, and how
// it ended. It adds no behaviour: what a driver answers passes as it is. Metrics
// and traces observe, so that no driver has a branch for them.
//
// # What is told
//
// A call is its [Op] and the tier of the driver, both from short lists, and the
// kind of its error. Nothing of a sandbox, a command, a path or a caller is: what an
// observer writes goes to systems that many people read, and what is counted must
// not grow with what tenants do.
//
// Of a process, an open file and a watcher it is their making that is told, not
// how they are used.
package call
