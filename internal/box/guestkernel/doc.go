// Package guestkernel is what tiers share whose commands run on a kernel of the box's own, a guest
// kernel: the file tree as such a kernel wants it, checkpoints, limits that it enforces itself, and
// what the ends of its processes mean. It knows neither of these tiers: they hand it their words and
// functions.
package guestkernel
