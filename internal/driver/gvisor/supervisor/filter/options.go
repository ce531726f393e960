//go:build linux

package filter

import (
	"gvisor.dev/gvisor/pkg/sentry/platform"
	"gvisor.dev/gvisor/pkg/sentry/platform/systrap"
	bootconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	goferconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

// BootOptions returns the options of the sentries that we boot: the systrap platform,
// gVisor's own network stack, no devices of the host, with and without direct access to the
// files of the box.
func BootOptions() []bootconfig.Options {
	info := (*systrap.Systrap)(nil).SeccompInfo()
	return []bootconfig.Options{bootOptions(info, true), bootOptions(info, false)}
}

func bootOptions(info platform.SeccompInfo, direct bool) bootconfig.Options {
	return bootconfig.Options{Platform: info, HostFilesystem: direct}
}

// GoferOptions returns the options of the gofers that belong to them.
func GoferOptions() []goferconfig.Options {
	var list []goferconfig.Options
	for _, direct := range []bool{true, false} {
		for _, lisafs := range []bool{true, false} {
			list = append(list, goferconfig.Options{DirectFS: direct, LisafsNeeded: lisafs})
		}
	}
	return list
}
