package boot

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// Arguments are the kernel's. khz is how fast the time stamp counter of the
// machine counts (see KHz), and only needed for [protocol.TCG]; 0 leaves it out.
func Arguments(accel protocol.Accel, khz int) string {
	list := []string{
		"quiet", "loglevel=3", "console=ttyS0",
		// It tests its ciphers at each start, which takes longer than the rest of
		// the drivers.
		"cryptomgr.notests",
		// What keeps commands from one another inside: they all are one user's.
		// The wall is the machine, and the host's kernel keeps that as it keeps
		// all its processes.
		"mitigations=off",
		"noreplace-smp", // patching itself for one processor takes longer than it saves
		"psi=0",         // nobody asks how long tasks waited, which is reckoned at each switch
		// Without AppArmor and TOMOYO, which are asked at each open and execution, and
		// have no policy here. What needs none stays.
		"lsm=landlock,lockdown,yama",
		"random.trust_cpu=on",
		// What it prepares to be traced by: nobody traces it, and no command may. It is
		// three tenths of what it executes until init.
		"initcall_blacklist=" + strings.Join([]string{"ftrace_check_for_weak_functions", "trace_eval_init", "tracer_init_tracefs"}, ","),
		"panic=-1", "reboot=t", // the machine ends, and QEMU with it
	}
	if accel == protocol.TCG && khz > 0 {
		// A kernel that measures the counter while the host is busy measures for
		// ever. Emulated, it is the host's.
		list = append(list, fmt.Sprintf("tsc_early_khz=%d", khz), "tsc=reliable")
	}
	if accel == protocol.TCG {
		// Code that was translated is found again by where it is. Where every program
		// has its libraries elsewhere, all of them are translated at each start.
		list = append(list, "norandmaps")
		// An instruction that repeats is one block of code for each time, so that of
		// all ways to copy or clear it is the slowest.
		list = append(list, "clearcpuid=rep_good")
		// For the init, whose environment this becomes: see agentEnv in vminit.
		list = append(list, "GODEBUG=asyncpreemptoff=1")
	}
	return strings.Join(list, " ")
}

const cpuinfo = "/proc/cpuinfo"

// KHz tells how fast the host's time stamp counter counts.
func KHz() (int, error) {
	text, err := os.ReadFile(cpuinfo)
	if err != nil {
		return 0, err
	}
	return khz(string(text))
}

// Processor says which processor this is. A machine that KVM gives it finds another
// one changed, if it goes on there.
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

// khz reads it from what the kernel tells of its first processor: it derives
// its measure of loops from it.
func khz(text string) (int, error) {
	value, ok := cpuField(text, "bogomips")
	if !ok {
		return 0, fmt.Errorf("%s does not tell how fast this machine's processor counts: %w", cpuinfo, paddock.Unsupported)
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 1 && f < 1e6) {
		return 0, fmt.Errorf("%s: bogomips %q: %w", cpuinfo, value, paddock.Invalid)
	}
	return int(f*500 + 0.5), nil
}

// cpuField gives the first value of a name.
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
