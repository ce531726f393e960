// Package volume keeps named directories that sandboxes write to and that outlive them. Whoever uses a volume holds a lock
// on it, which ends with the process. What sandboxes have put there is hostile: it is measured and removed without
// following a link, and no program of the host uses it.
package volume
