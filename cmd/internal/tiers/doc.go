// Package tiers connects the drivers to the command line, for all programs of paddock.
package tiers
