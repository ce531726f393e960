// Package endtoend tests a sandbox's network as a whole: sandboxes of every tier with real
// programs inside, and servers on this machine's loopback. It contains only tests, because
// only tests may import every tier.
package endtoend
