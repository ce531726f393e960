// Package trial tries the way out as a whole: boxes of every tier, programs as
// people use them in these boxes, and servers on this machine's loopback. It holds
// tests alone, because only they may know every tier at once.
package trial
