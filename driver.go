package paddock

import "context"

// A Driver makes sandboxes and finds them again.
type Driver interface {
	// Info returns what a tier can do on this host, what the host lacks, and the remedy. It
	// also answers on a host where no sandbox can be made. tier is a value that [Spec.Tier]
	// may have for this driver; for any other value Info returns [Unsupported]. For [Auto],
	// Info describes the tier that a spec without a tier gets.
	Info(ctx context.Context, tier Tier) (Info, error)

	// Create makes a sandbox and returns when a command can run in it. After an error,
	// nothing of the sandbox is left. If the tier or the host cannot do everything that the
	// spec asks for, Create returns [Unsupported].
	Create(ctx context.Context, spec Spec) (Sandbox, error)

	// Open returns a sandbox by its ID, including a sandbox that an earlier process made.
	// Only the driver that made a [Spec.Ephemeral] sandbox finds it.
	Open(ctx context.Context, id ID) (Sandbox, error)

	// List returns the status of every sandbox that Open would find, in the order of
	// creation.
	List(ctx context.Context) ([]Status, error)

	// RemoveSnapshot deletes a snapshot. It does not change sandboxes that were made from
	// the snapshot, or snapshots of those sandboxes. Removing a snapshot that does not
	// exist is not an error, so callers may retry.
	RemoveSnapshot(ctx context.Context, id SnapshotID) error

	// Close releases the driver. It removes ephemeral sandboxes and leaves all others. A
	// second Close does nothing. Every other call after Close returns [Unavailable].
	Close() error
}

// A Tier is a strength of isolation.
type Tier string

const (
	// Auto asks for gvisor, or jail where gvisor cannot make the sandbox; never microvm or sim.
	Auto Tier = ""
	// Sim is a shell, its tools and a file system in Go. It starts no host process for a
	// command.
	Sim Tier = "sim"
	// Jail isolates with namespaces, Landlock, seccomp and control groups on the host's
	// kernel.
	Jail Tier = "jail"
	// GVisor runs commands on a user-space kernel.
	GVisor Tier = "gvisor"
	// MicroVM runs commands on their own kernel in a virtual machine.
	MicroVM Tier = "microvm"
)

// Info describes a driver on this host.
type Info struct {
	Tier      Tier   `json:"tier"`
	Available bool   `json:"available"` // a sandbox with a zero Spec can be made here, now
	Version   string `json:"version"`   // of the boundary: kernel release, gVisor version, …

	// Capabilities lists what the tier can do on this host. A call that needs any other
	// capability returns [Unsupported].
	Capabilities []Capability `json:"capabilities"`

	// Controls lists every control of the tier, present or not.
	Controls []Finding `json:"controls"`

	// Defaults are the limits of a spec that sets none.
	Defaults Limits `json:"defaults"`
}

// Can reports whether the tier has the capability c.
func (i Info) Can(c Capability) bool {
	for _, have := range i.Capabilities {
		if have == c {
			return true
		}
	}
	return false
}

// Finding returns the finding of control c. It reports false if the tier does not have the
// control.
func (i Info) Finding(c Control) (Finding, bool) {
	for _, f := range i.Controls {
		if f.Control == c {
			return f, true
		}
	}
	return Finding{}, false
}

// A Capability is something that a tier may support beyond running commands and reading and
// writing files.
type Capability string

const (
	CanTerminal       Capability = "terminal"        // Cmd.Terminal
	CanAttach         Capability = "attach"          // Sandbox.Attach
	CanWatch          Capability = "watch"           // FS.Watch
	CanWatchHost      Capability = "watch-host"      // what the host changes in a mount reaches FS.Watch and programs that watch
	CanDial           Capability = "dial"            // Sandbox.Dial
	CanOutlive        Capability = "outlive"         // sandboxes that outlive the process that made them
	CanPause          Capability = "pause"           // Pause and Resume
	CanSnapshotFiles  Capability = "snapshot-files"  // Snapshot of files
	CanSnapshotMemory Capability = "snapshot-memory" // Snapshot of files and memory
	CanUpdateLimits   Capability = "update-limits"   // Update of limits, live
	CanUpdatePolicy   Capability = "update-policy"   // Update of the policy, live
	CanUsers          Capability = "users"           // Cmd.User other than Spec.User
	CanSudo           Capability = "sudo"            // Spec.Sudo
	CanNetworkHost    Capability = "network-host"    // NetworkHost
	CanNetworkList    Capability = "network-list"    // NetworkList: the policy's rules decide
	CanPrograms       Capability = "programs"        // executables built for the host's processor architecture
	CanRootHost       Capability = "root-host"       // RootHost
	CanRootDir        Capability = "root-dir"        // RootDir
	CanRootSnapshot   Capability = "root-snapshot"   // RootSnapshot
	CanRootImage      Capability = "root-image"      // RootImage
	CanMount          Capability = "mount"           // Spec.Mounts, read-only
	CanMountWrite     Capability = "mount-write"     // Mount.Write
	CanMountOverlay   Capability = "mount-overlay"   // Mount.Overlay
	CanAudit          Capability = "audit"           // Policy.Audit, of kinds with OfProcess
	CanForwardAgent   Capability = "forward-agent"   // Policy.KeyAgents
	CanUndo           Capability = "undo"            // Spec.Undo
	CanMonitor        Capability = "monitor"         // Spec.Monitor
)

// Capabilities of ephemeral sandboxes that only the process has which opened the driver, by the driver's options. A server's
// clients do not have them.
const (
	CanReview         Capability = "review"          // changes of writable mounts can go to a layer, to be proposed
	CanMonitorFiles   Capability = "monitor-files"   // a monitor can refuse changes of writable mounts before they are made
	CanMonitorNetwork Capability = "monitor-network" // a monitor can refuse connections and uses of secrets
	CanMonitorFreeze  Capability = "monitor-freeze"  // while a monitor's question about a connection waits, no process runs
)

// ForClients returns the info as a server tells it to its clients, whose sandboxes are not of their own process: without
// reviews and monitors. It shares no list of capabilities with i.
func (i Info) ForClients() Info {
	var list []Capability
	for _, c := range i.Capabilities {
		switch c {
		case CanReview, CanMonitorFiles, CanMonitorNetwork, CanMonitorFreeze:
		default:
			list = append(list, c)
		}
	}
	i.Capabilities = list
	return i
}

// A Control is one mechanism that separates guest and host.
type Control string

const (
	ControlUserNS       Control = "user-namespace"
	ControlMountNS      Control = "mount-namespace"
	ControlPIDNS        Control = "pid-namespace"
	ControlNetNS        Control = "net-namespace"
	ControlIPCNS        Control = "ipc-namespace"
	ControlUTSNS        Control = "uts-namespace"
	ControlCgroupNS     Control = "cgroup-namespace"
	ControlTimeNS       Control = "time-namespace"
	ControlReadOnly     Control = "read-only-mounts" // recursive, by mount_setattr
	ControlLandlock     Control = "landlock"
	ControlKernel       Control = "own-kernel" // commands run on a kernel that is not the host's
	ControlSeccomp      Control = "seccomp"
	ControlNoNewPrivs   Control = "no-new-privileges"
	ControlCapabilities Control = "no-capabilities"
	ControlKeyring      Control = "session-keyring"
	ControlEnvironment  Control = "environment"
	ControlDescriptors  Control = "closed-descriptors"
	ControlIdentity     Control = "unprivileged-identity" // no kernel uid 0
	ControlProtected    Control = "protected-names"
	ControlNetwork      Control = "network"
	ControlMemory       Control = "memory-limit"
	ControlCPU          Control = "cpu-limit"
	ControlPIDs         Control = "pids-limit"
	ControlIO           Control = "io-limit"
	ControlDisk         Control = "disk-limit"
	ControlFiles        Control = "open-files-limit"
)

// A Strength says how strictly a control is enforced.
type Strength string

const (
	// Absent means that the control is not enforced.
	Absent Strength = "absent"
	// Weak means that the control is enforced by a mechanism with a gap, which Finding.How
	// names.
	Weak Strength = "weak"
	// Full means that the kernel or the hypervisor enforces the control.
	Full Strength = "full"
)

// A Finding describes one control: on a host (in Info) or in a sandbox (in Status).
type Finding struct {
	Control  Control  `json:"control"`
	Strength Strength `json:"strength"`
	How      string   `json:"how,omitempty"`    // the mechanism, with its gap if it is weak
	Cause    string   `json:"cause,omitempty"`  // why the strength is not Full
	Remedy   string   `json:"remedy,omitempty"` // what an operator can do about it
}
