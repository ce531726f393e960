// Package tiers joins drivers to the command line: it is the wiring that the programs
// of paddock share.
package tiers
