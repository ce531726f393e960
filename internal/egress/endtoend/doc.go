// Package endtoend tests a sandbox's network as a whole: sandboxes of every tier, programs as people use them inside,
// and servers on this machine's loopback. It holds tests alone, because only tests may import every tier.
package endtoend
