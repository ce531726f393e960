package supervisor

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/reflect/protoreflect"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/runsc/boot"
	bootfilter "gvisor.dev/gvisor/runsc/boot/filter"
	"gvisor.dev/gvisor/runsc/cmd/sandboxsetup"
	"gvisor.dev/gvisor/runsc/config"
	goferfilter "gvisor.dev/gvisor/runsc/fsgofer/filter"
	"gvisor.dev/gvisor/runsc/specutils"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent/emitter"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/filter"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// written is the version of gVisor that the assumptions below were last compared with, line
// by line.
const written = "v0.0.0-20260905035102-160fafc42237"

// upgrade says what to do about another version.
const upgrade = `An upgrade of gVisor is read before it is run:
  1. make the seccomp programs again: go run ./internal/driver/gvisor/supervisor/filter/generate, on each architecture;
  2. read what changed in runsc/{boot,cmd,container,sandbox,fsgofer,specutils}, pkg/sentry/seccheck and pkg/urpc;
  3. run this test: each of its sub-tests is an assumption, and says what stands on it;
  4. set gvisor.Version and, last, the version that this test was written for.`

// TestAssumptionsAboutGVisor lists everything that this tier assumes about gVisor's
// internals, for which gVisor makes no promise. After an upgrade, a failing sub-test names
// a broken assumption. Other tests check the assumptions that need more code:
//
//   - filter: the programs are, instruction by instruction, those that gVisor compiles;
//   - procevent/emitter: an event of a trace point arrives, whatever its text;
//   - gvisor.TestWhatCommandsDoIsTold: commands pass the trace points;
//   - gvisor.TestAPythonProcessCountsOnAfterPauseAndInForks: saving and restoring;
//   - TestATakenOverSentryReachesNothing: the restrictions hold when the guard is complete.
func TestAssumptionsAboutGVisor(t *testing.T) {
	t.Run("the module in go.mod is the one that these were written for", isVersion)
	t.Run("tables of seccomp programs have the names that ours are linked to", programsAreFound)
	t.Run("the program is built without cgo, or gVisor executes itself anew", func(t *testing.T) {
		if withC != config.CgoEnabled || withC {
			t.Errorf("cgo: %v here, %v in gVisor; run tests of this tier with CGO_ENABLED=0", withC, config.CgoEnabled)
		}
	})
	t.Run("the flags that make up the configuration are there, and mean what they did", configurationMeansIt)
	t.Run("the umounter is this program again, unless ExePath is another", umounterIsExePath)
	t.Run("calls over urpc have these names", callsAreNamed)
	t.Run("trace points and their fields have these names", pointsAreNamed)
	t.Run("messages of trace points have these numbers", messagesAreNumbered)
	t.Run("the archive of the private layer is named by an annotation", layerIsAnnotated)

	var o observation
	var s sunk
	var spec paddock.Spec
	d, sb := look(t, observedArgv0, s, &spec, &o)
	t.Run("gVisor starts processes of these names, and no others", func(t *testing.T) { processesAreNamed(t, &o) })
	t.Run("those that can change files are two, and enlist", func(t *testing.T) { processesEnlist(t, &o) })
	t.Run("a session of trace points can be made before the first instruction of the guest's", func(t *testing.T) { guardIsFirst(t, &o) })
	t.Run("a boot and a gofer load programs, and compile none", func(t *testing.T) { programsAreLoaded(t, &o) })
	t.Run("what gVisor's processes begin with knows them apart by a letter, and bounds their capabilities", func(t *testing.T) { processesAreBounded(t, &o) })
	t.Run("gVisor's processes are in the box's network namespace", func(t *testing.T) { networkIsTheBox(t, &o) })
	t.Run("a grown table of descriptors stays grown", func(t *testing.T) {
		for _, s := range at(o.Sealed, "runsc-sandbox") {
			if s.Table < 512 {
				t.Errorf("room for %d; a sentry that shares a smaller one waits at its growth", s.Table)
			}
		}
	})
	t.Run("a link that is set before the start is the only one", func(t *testing.T) { linkIsSet(t, sb) })
	t.Run("a restore takes the link that was set before it, and a tar the layer", func(t *testing.T) { stateComesBack(t, d, sb, spec) })
}

func isVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../../go.mod")
	if errors.Is(err, os.ErrNotExist) && os.Geteuid() != 0 {
		return // an unprivileged user has no source tree, and root has tested it
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\tgvisor.dev/gvisor "+written+"\n") {
		found := regexp.MustCompile(`gvisor\.dev/gvisor v\S+`).FindString(string(mod))
		t.Errorf("go.mod has %q, and this was written for %s.\n%s", found, written, upgrade)
	}
	if !strings.Contains(written, "-"+gvisor.Version) {
		t.Errorf("gvisor.Version is %s, which is not the date of %s", gvisor.Version, written)
	}
}

// Package filter sets a variable of gVisor by linkname. If gVisor renamed it, the program
// would still link, and every boot would compile.
func programsAreFound(t *testing.T) {
	if err := filter.InstallBoot(); err != nil {
		t.Error(err)
	}
	if err := filter.InstallGofer(); err != nil {
		t.Error(err)
	}
	for _, o := range filter.BootOptions() {
		if _, ok := bootfilter.GetPrecompiled(o.ConfigKey()); !ok {
			t.Errorf("a boot does not find the program for %s where package filter puts it (runsc/boot/filter.precompiledPrograms)", o.ConfigKey())
		}
	}
	for _, o := range filter.GoferOptions() {
		if _, ok := goferfilter.GetPrecompiled(o.ConfigKey()); !ok {
			t.Errorf("a gofer does not find the program for %s where package filter puts it (runsc/fsgofer/filter.precompiledPrograms)", o.ConfigKey())
		}
	}
}

func configurationMeansIt(t *testing.T) {
	c, err := configuration(&boxinit.GuestKernelConfig{Disk: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	overlay := c.GetOverlay2()
	for what, ok := range map[string]bool{
		"the platform is systrap":                          c.Platform == "systrap",
		"the network is the sandbox's own":                 c.Network == config.NetworkSandbox,
		"files of the host are reached by descriptors":     c.DirectFS,
		"control groups are left alone":                    c.IgnoreCgroups,
		"the host's settings are left alone":               c.HostSettings == config.HostSettingsIgnore,
		"no socket of the host can be connected to":        c.GetHostUDS() == config.HostUDSNone,
		"the private layer is in memory":                   overlay.RootOverlayMedium() == config.MemoryOverlay,
		"its archive may be named":                         c.AllowRootfsTarAnnotation,
		"a sidecar that is missing is no reason to fail":   c.SidecarUsagePolicy.AllowEmbeddedFallback(),
		"nothing is executed with the walls taken down":    !c.TestOnlyAllowRunAsCurrentUserWithoutChroot,
		"devices of graphics cards are not passed through": !c.NVProxy && !c.TPUProxy,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
}

// See smallUmounter.
func umounterIsExePath(t *testing.T) {
	if specutils.ExePath != "/proc/self/exe" {
		t.Errorf("gVisor executes %s as itself, which isChild does not know", specutils.ExePath)
	}
	f, err := sys.SealedFile("umount", sys.DetachProc())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func(was string) { specutils.ExePath = was }(specutils.ExePath)
	specutils.ExePath = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	cmd, w := sandboxsetup.ExecProcUmounter()
	w.Close() // so it unmounts nothing
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the umounter, of which nothing was asked: %v, want exit status 3", err)
	}
	if want := []string{specutils.ExePath, "umount", "--sync-fd=3", "/proc"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("gVisor starts %q, and our umounter was made for %q", cmd.Args, want)
	}
}

func callsAreNamed(t *testing.T) {
	for have, want := range map[string]string{
		boot.ContMgrSetNetworkArgs:     "containerManager.SetNetworkArgs",
		boot.ContMgrCreateTraceSession: "containerManager.CreateTraceSession",
		boot.ContMgrRootContainerStart: "containerManager.StartRoot",
		boot.ContMgrRestore:            "containerManager.Restore",
		boot.ContMgrCheckpoint:         "containerManager.Checkpoint",
		boot.ContMgrPause:              "containerManager.Pause",
		boot.ContMgrResume:             "containerManager.Resume",
	} {
		if have != want {
			t.Errorf("%s is now called %s", want, have)
		}
	}
}

func pointsAreNamed(t *testing.T) {
	seccheck.Initialize()
	for _, kind := range paddock.AuditKinds() {
		if !kind.OfProcess() {
			continue // no kernel reports it
		}
		points, err := emitter.Points([]paddock.AuditKind{kind})
		if err != nil || len(points) == 0 {
			t.Errorf("%s: %d points, %v", kind, len(points), err)
		}
		for _, p := range points {
			desc, ok := seccheck.Points[p.Name]
			if !ok {
				t.Errorf("%s would not be told: there is no point %s", kind, p.Name)
			}
			for _, name := range p.ContextFields {
				if !slices.ContainsFunc(desc.ContextFields, func(f seccheck.FieldDesc) bool { return f.Name == name }) {
					t.Errorf("%s: point %s has no field %s", kind, p.Name, name)
				}
			}
		}
	}
}

// Package procevent decodes fields by number, without gVisor's code.
func messagesAreNumbered(t *testing.T) {
	for kind, want := range map[pb.MessageType]int{
		pb.MessageType_MESSAGE_SENTRY_CLONE: 2, pb.MessageType_MESSAGE_SENTRY_EXEC: 3, pb.MessageType_MESSAGE_SENTRY_EXIT_NOTIFY_PARENT: 4,
		pb.MessageType_MESSAGE_SYSCALL_OPEN: 7, pb.MessageType_MESSAGE_SYSCALL_CONNECT: 10,
	} {
		if int(kind) != want {
			t.Errorf("%s is %d, and package procevent reads it as %d", kind, kind, want)
		}
	}
	for _, row := range []struct {
		message protoreflect.ProtoMessage
		fields  map[string]int
	}{
		{&pb.ContextData{}, map[string]int{"thread_group_id": 4, "credentials": 7, "cwd": 8, "process_name": 9, "parent_thread_group_id": 10}},
		{&pb.Credentials{}, map[string]int{"effective_uid": 2}},
		{&pb.ExecveInfo{}, map[string]int{"context_data": 1, "binary_path": 2, "argv": 3, "env": 4}},
		{&pb.CloneInfo{}, map[string]int{"context_data": 1, "created_thread_group_id": 4}},
		{&pb.ExitNotifyParentInfo{}, map[string]int{"context_data": 1, "exit_status": 2}},
		{&pb.Open{}, map[string]int{"context_data": 1, "exit": 2, "fd_path": 5, "pathname": 6, "flags": 7}},
		{&pb.Exit{}, map[string]int{"result": 1, "errorno": 2}},
		{&pb.Connect{}, map[string]int{"context_data": 1, "address": 6}},
	} {
		d := row.message.ProtoReflect().Descriptor()
		for name, want := range row.fields {
			switch f := d.Fields().ByName(protoreflect.Name(name)); {
			case f == nil:
				t.Errorf("%s has no field %s", d.Name(), name)
			case int(f.Number()) != want:
				t.Errorf("%s.%s is %d, and package procevent reads it as %d", d.Name(), name, f.Number(), want)
			}
		}
	}
}

func layerIsAnnotated(t *testing.T) {
	if got := specutils.RootfsTarUpperPath(&specs.Spec{Annotations: map[string]string{layerAnnotation: layerLink}}); got != layerLink {
		t.Errorf("gVisor reads %q from %s", got, layerAnnotation)
	}
}

// argv lists the first arguments of the processes.
const (
	bootName  = "runsc-sandbox"
	goferName = "runsc-gofer"
)

func processesAreNamed(t *testing.T, o *observation) {
	for name, want := range map[string]int{observedArgv0: 1, bootName: 1, goferName: 1} {
		if got := len(at(o.Sealed, name)); got != want {
			t.Errorf("%d processes are called %s, not %d: %+v", got, name, want, o.Sealed)
		}
		if name != observedArgv0 && !isChild(name) {
			t.Errorf("isChild does not know %s", name)
		}
	}
	sentries := at(o.Sealed, bootName)
	if len(sentries) != 1 {
		return
	}
	// The sentry makes the other processes, in which the guest's code runs. They do not
	// have the names of its program.
	for _, s := range o.Sealed {
		known := len(s.Args) > 0 && slices.Contains([]string{observedArgv0, bootName, goferName}, s.Args[0])
		if !known && s.Parent != sentries[0].PID && !slices.ContainsFunc(o.Sealed, func(p seen) bool { return p.PID == s.Parent && p.Parent == sentries[0].PID }) {
			t.Errorf("nobody has said what this is, and who guards it: %+v", s)
		}
	}
	for _, want := range []string{"--sync-userns-fd=", "--setup-root", "--apply-caps=true"} {
		if !slices.ContainsFunc(sentries[0].Args, func(a string) bool { return strings.HasPrefix(a, want) }) {
			t.Errorf("the sentry is not told %s, on which awaitIdentity or the sentry's own root stands: %q", want, sentries[0].Args)
		}
	}
}

// enlisted is the number of filters of a process after enlisting: that of the box's init
// process, and the reporting one.
const enlisted = 2

func processesEnlist(t *testing.T, o *observation) {
	with := 0
	for _, s := range o.Sealed {
		if len(s.Args) > 0 && (s.Args[0] == bootName || s.Args[0] == goferName) {
			if s.Filters < enlisted {
				t.Errorf("%s has %d filters when the box is sealed: it has not enlisted", s.Args[0], s.Filters)
			}
			with++
		}
	}
	if want := (&supervisor{}).Processes(); with != want {
		t.Errorf("%d processes enlist, and the broker waits for %d", with, want)
	}
	for _, s := range o.Started {
		if s.PID != 1 && s.Filters < enlisted && s.Caps != 0 {
			t.Errorf("beside those that enlist there is one with capabilities: %+v", s)
		}
	}
}

// gVisor installs a filter of its own just before it runs the guest. When the session and
// so the guard were made, the filter was not installed yet.
func guardIsFirst(t *testing.T, o *observation) {
	before, after := at(o.Sealed, bootName), at(o.Started, bootName)
	if len(before) != 1 || len(after) != 1 {
		t.Fatalf("%+v, %+v", before, after)
	}
	if before[0].Filters != enlisted || after[0].Filters != enlisted+1 {
		t.Errorf("the sentry has %d filters when it is guarded, and %d when it runs; want %d and %d: either the guest runs before the guard, or gVisor's own filter is missing",
			before[0].Filters, after[0].Filters, enlisted, enlisted+1)
	}
	if before[0].Score == 1000 { // as until own is called: see offer
		t.Error("the sentry is still offered to be killed first: the guard is not where the processes for the guest's code are there")
	}
	session, start := strings.Index(o.Said, "containerManager.CreateTraceSession"), strings.Index(o.Said, "containerManager.StartRoot")
	if session < 0 || start < 0 || session > start {
		t.Errorf("gVisor's log has the session at %d and the start at %d", session, start)
	}
}

func programsAreLoaded(t *testing.T, o *observation) {
	if n := strings.Count(o.Said, "Loaded precompiled seccomp instructions"); n != 2 {
		t.Errorf("%d of 2 processes say that they loaded a precompiled program", n)
	}
	if strings.Contains(o.Said, "No precompiled program found") {
		t.Errorf("a program is compiled at boot: the options of our boxes are not those that filter.BootOptions and GoferOptions name")
	}
}

// The host's side makes no link if the configured network is the host's, and the sentry
// keeps the link that it was given.
func linkIsSet(t *testing.T, sb paddock.Sandbox) {
	var names []string
	for line := range strings.Lines(sh(t, sb, "cat /proc/net/dev")) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"eth0", "lo"}) {
		t.Errorf("interfaces: %q", names)
	}
}

func stateComesBack(t *testing.T, d paddock.Driver, sb paddock.Sandbox, spec paddock.Spec) {
	sh(t, sb, "echo kept >/tmp/kept")
	for _, memory := range []bool{true, false} {
		id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Errorf("memory %v: %v", memory, err)
			continue
		}
		spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
		again, err := d.Create(t.Context(), spec)
		if err != nil {
			t.Errorf("memory %v: %v", memory, err)
			continue
		}
		if got := sh(t, again, "cat /tmp/kept"); got != "kept\n" {
			t.Errorf("memory %v: %q", memory, got)
		}
		linkIsSet(t, again) // an answer shows that the link works
		if err := again.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// See boundChildren.
func processesAreBounded(t *testing.T, o *observation) {
	if bootName[6] == goferName[6] {
		t.Error("the letter is the same")
	}
	for name, want := range map[string]uint64{bootName: sentryCaps, goferName: goferCaps} {
		var held, bound uint64
		_, said, _ := strings.Cut(o.Said, name+" begins with ")
		if _, err := fmt.Sscanf(said, "%v of %v", &held, &bound); err != nil || bound != want || held&sys.CapSetPCap != 0 {
			t.Errorf("%s begins with the capabilities %#x and the bounding set %#x, want %#x (%v)", name, held, bound, want, err)
		}
		for _, s := range at(o.Started, name) {
			if s.Bound != want || s.Caps&^want != 0 {
				t.Errorf("%s has the capabilities %#x and the bounding set %#x, want %#x", name, s.Caps, s.Bound, want)
			}
		}
	}
}

// A namespace named by a path is joined, which is faster than making one. The box's
// namespace is empty.
func networkIsTheBox(t *testing.T, o *observation) {
	ours := at(o.Started, observedArgv0)
	for _, s := range slices.Concat(at(o.Started, bootName), at(o.Started, goferName)) {
		if len(ours) != 1 || s.Net != ours[0].Net || s.Net == "" {
			t.Errorf("%q is in %q: %+v", s.Args, s.Net, ours)
		}
	}
}
