//go:build !linux

package cgroup

import "github.com/paddock-sandbox/paddock"

// A Host holds the rights of this process on control groups: none on this system.
type Host struct{}

// Probe returns a Host without rights.
func Probe() *Host { return &Host{} }

// Settle returns what Probe does.
func Settle(func() error) *Host { return Probe() }

// Findings reports that no limit can be enforced here.
func (*Host) Findings() []paddock.Finding {
	var all []paddock.Finding
	for _, c := range [...]paddock.Control{
		paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlIO,
	} {
		all = append(all, paddock.Finding{
			Control: c, Strength: paddock.Absent,
			Cause: "only Linux has control groups", Remedy: "run paddock on Linux",
		})
	}
	return all
}
