package bootfiles

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// Arguments returns the kernel's command line. khz is the frequency of the machine's time
// stamp counter (see KHz). It is only needed for [protocol.TCG]; 0 leaves it out.
func Arguments(accel protocol.Accel, khz int) string {
	list := []string{
		"quiet", "loglevel=3", "console=ttyS0",
		// The kernel tests its ciphers at each start, which takes longer than all other
		// drivers.
		"cryptomgr.notests",
		// These protect processes of different users from each other, but all commands are
		// one user's. The boundary is the machine, and the host's kernel protects its own
		// processes.
		"mitigations=off",
		"noreplace-smp", // the kernel patching itself for one processor takes longer than it saves
		"psi=0",         // pressure stall information is unused, and costs time at each task switch
		// Without AppArmor and TOMOYO: they are called at each open and exec, and have no
		// policy here. The modules that need no policy stay.
		"lsm=landlock,lockdown,yama",
		"random.trust_cpu=on",
		// Skip the preparation of tracing, because no command may trace the kernel. It
		// takes three tenths of the instructions executed before init.
		"initcall_blacklist=" + strings.Join([]string{"ftrace_check_for_weak_functions", "trace_eval_init", "tracer_init_tracefs"}, ","),
		"panic=-1", "reboot=t", // the machine ends, and QEMU with it
	}
	if accel == protocol.TCG && khz > 0 {
		// On a busy host, the kernel may measure the counter without end. In emulation the
		// counter is the host's.
		list = append(list, fmt.Sprintf("tsc_early_khz=%d", khz), "tsc=reliable")
	}
	if accel == protocol.TCG {
		// QEMU finds translated code by its address. If each program had its libraries at
		// other addresses, they would be translated at each start.
		list = append(list, "norandmaps")
		// QEMU translates a repeating instruction as one block per repetition, which makes
		// it the slowest way to copy or clear memory.
		list = append(list, "clearcpuid=rep_good")
		// This becomes the environment of init: see agentEnv in vminit.
		list = append(list, "GODEBUG=asyncpreemptoff=1")
	}
	return strings.Join(list, " ")
}

const cpuinfo = "/proc/cpuinfo"

// KHz returns the frequency of the host's time stamp counter.
func KHz() (int, error) {
	text, err := os.ReadFile(cpuinfo)
	if err != nil {
		return 0, err
	}
	return khz(string(text))
}

// Processor identifies the host's processor. Under KVM, a machine that is restored on
// another processor would see it change.
func Processor() (string, error) {
	text, err := os.ReadFile(cpuinfo)
	if err != nil {
		return "", err
	}
	return processor(string(text)), nil
}

func processor(text string) string {
	var list []string
	for _, name := range []string{"vendor_id", "cpu family", "model", "stepping", "microcode", "flags"} {
		value, _ := cpuField(text, name)
		list = append(list, value)
	}
	return strings.Join(list, "|")
}

// khz computes the frequency from the kernel's loop measure of the first processor, which
// the kernel derives from it.
func khz(text string) (int, error) {
	value, ok := cpuField(text, "bogomips")
	if !ok {
		return 0, fmt.Errorf("%s does not have the frequency of the time stamp counter: %w", cpuinfo, paddock.Unsupported)
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 1 && f < 1e6) {
		return 0, fmt.Errorf("%s: bogomips %q: %w", cpuinfo, value, paddock.Invalid)
	}
	return int(f*500 + 0.5), nil
}

// cpuField returns the first value of a field.
func cpuField(text, name string) (string, bool) {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		key, value, _ := strings.Cut(s.Text(), ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
