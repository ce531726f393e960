// Package usage measures what sandboxes use, and computes its cost.
//
// # The story
//
// A [Meter] samples the status of a driver's sandboxes and writes one record for each sandbox and hour of the clock,
// which grows. Between two samples package tenant notifies it of a pause, a resume or a removal. [Summarize] adds
// records up, and [Prices] compute the cost of a sum.
//
// # Time
//
// Durations are by the monotonic clock; the wall clock only gives the time of day. So a jump of the clock costs no
// tenant anything: after a jump forward there is a gap between records, and after a jump back records continue where
// they were until the clock has caught up. While no meter ran, the duration is the sandbox's own, or the wall clock's
// where it has none. Records of one sandbox never overlap and none crosses an hour, so sums of hours add up.
//
// # Quantities
//
// Processor time and memory are the tier's measurements. Memory is the mean of two samples, times the time between
// them. A quantity that the tier cannot measure is reported as not measured, never as zero. Disk is the reservation,
// because no tier reports its use. Network is counted by the tier's gateway, on the host's side. For a sandbox with the
// host's network it is not measured.
//
// # Old records
//
// After a while the hours of a day become one record (store.FoldRecords), so that old usage takes space by the kinds of
// sandboxes and not by their number. Sums of full days stay the same.
//
// # Losses
//
// No written record is lost. A crash loses no time, because the next meter begins where the last record ended. For a
// sandbox that ended unnoticed (its boundary died, and no caller removed it through a tenant's driver) the time after
// the last sample is lost. If the store cannot be written, the meter keeps the records and retries with the next
// sample.
package usage
