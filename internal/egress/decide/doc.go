// Package decide judges what a sandbox may reach. It parses hosts, compiles and checks a [paddock.NetworkPolicy] into
// [Rules], and judges flows, requests and names by them.
//
// It is pure: no network, no files, no clock. It resolves no name, so a name and an address never stand for each other
// here.
package decide
