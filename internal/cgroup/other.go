//go:build !linux

package cgroup

import "github.com/paddock-sandbox/paddock"

// A Host is what this process may do with control groups here: nothing.
type Host struct{}

// Probe finds out what this process may do.
func Probe() *Host { return &Host{} }

// Findings tells that no limit can be had here.
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
