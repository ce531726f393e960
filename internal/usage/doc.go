// Package usage counts what sandboxes use, and what that costs.
//
// # The story
//
// A [Meter] asks a driver again and again how its sandboxes are, and writes one
// record for each sandbox and hour of the clock, which grows. Between two
// questions it is told of moments that count (a pause, a resume, a removal) by
// package tenant. [Summarize] adds records up, and [Prices] say what a sum costs.
//
// # Time
//
// How long something took is by the monotonic clock; the wall clock only says
// when. So a clock that jumps costs nobody anything: after a jump forward there
// is a gap between records, and after one back they go on where they were, until
// the clock has come there too. While no meter ran, time is what the sandbox's
// own count of it says, and the wall clock where it has none. Records of one
// sandbox never overlap, and none crosses an hour, so that sums of hours add up.
//
// # What is counted
//
// Processor time and memory are what the tier measures; memory is the middle of
// two samples, times the time between. What the tier cannot measure is told as
// not measured, never as nothing. Disk is what was reserved: no tier tells what
// of it is in use. Network is what the tier's own way out counts, on the host's side;
// of a sandbox with the host's network, which counts nobody apart, it is not measured.
//
// # What is old
//
// After a while the hours of a day become one record (store.FoldRecords), so that what
// was used long ago takes room by the kinds of sandboxes that there were, and not by
// their number. Sums of full days stay as they were.
//
// # What is lost
//
// Nothing that was written. A crash loses no time, since the next meter begins
// where the last record ended; of a sandbox that ended without a word (its boundary
// died, and nobody removed it through a tenant's driver) what came after the last
// sample. A store that cannot be written is tried again with the next sample, and
// what it missed is kept meanwhile.
package usage
