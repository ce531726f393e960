// Package infocache keeps the Info of a tier for half a minute.
//
// A tier finds out what it can do by making a sandbox for trial. Nobody's quota counts that
// sandbox, and everybody with a key may ask. So all callers of a server share one question
// for each tier at a time, and its answer:
//
//   - An answer is kept for 30 seconds if the tier is available. Any other answer, and an
//     error, is kept for one second, because the host may be mended or quiet by then.
//   - A caller that gives up ends no question, because others wait for it. The question has
//     a context of its own, which ends with the driver.
//   - Each caller gets a copy.
package infocache
