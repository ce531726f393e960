// Package guestkernel contains what tiers with a guest kernel share: the file tree for such
// a kernel, checkpoints, limits that the kernel enforces itself, and the interpretation of
// the ends of its processes. It does not know these tiers: they pass it their texts and
// functions.
package guestkernel
