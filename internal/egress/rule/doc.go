// Package rule decides what a sandbox may reach: it reads hosts, compiles and
// checks a [paddock.NetworkPolicy], and judges flows, requests and names by it.
//
// It is pure: no network, no files, no clock. It looks up no name, so a name
// and an address never stand for each other here.
package rule
