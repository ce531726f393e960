package paddock

import "time"

// A Spec says what sandbox to make. The zero Spec is the safest one: this
// machine's own system read-only, no workspace, no network, default limits.
type Spec struct {
	// ID names the sandbox; empty lets the driver choose. [ID.Valid] says
	// what is allowed. An ID in use is refused with [Exists].
	ID ID `json:"id,omitempty"`

	// Tier must be the driver's own, or Auto.
	Tier Tier `json:"tier,omitempty"`

	// Root is where the file tree comes from.
	Root Root `json:"root,omitzero"`

	// Mounts are host directories and files that appear inside.
	Mounts []Mount `json:"mounts,omitempty"`

	// User is who commands run as: a name from the root's /etc/passwd, or a
	// number. Empty is the caller's own name and number, or "user" (1000)
	// where the caller is root. No user has privileges over the host.
	User string `json:"user,omitempty"`

	// Sudo gives commands `sudo`, without a password: whatever runs inside may
	// have commands run as any user of the sandbox, root too, as Cmd.User lets
	// the caller, and with no right more. It is for callers who ask for it by
	// name, and needs [CanSudo]; without it there is no such program.
	Sudo bool `json:"sudo,omitempty"`

	// Env is added to the environment of every command, on top of the
	// tier's own: PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG, TMPDIR, and
	// of [ToolchainVariables] those that name a place that is to be seen
	// inside. Nothing else of the caller's environment enters.
	Env map[string]string `json:"env,omitempty"`

	// Dir is the working directory of commands that name none. Empty is the
	// target of the first mount that is a directory, else the home.
	Dir string `json:"dir,omitempty"`

	// Hostname is what the sandbox calls itself; empty is "paddock".
	Hostname string `json:"hostname,omitempty"`

	Limits Limits            `json:"limits,omitzero"`
	Policy Policy            `json:"policy,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`

	// Ephemeral ties the sandbox to the process that makes it: it is removed
	// when the driver is closed or that process dies, however it dies.
	Ephemeral bool `json:"ephemeral,omitempty"`

	// AllowMissing names controls whose absence or weakness the caller
	// accepts. Without it, Create refuses where a wall of the tier cannot be
	// had, or a limit that the spec asks for. A default limit is enforced as
	// well as the host can, and Status says how well. AllowMissing is the
	// only way to less isolation than the tier stands for.
	AllowMissing []Control `json:"allow_missing,omitempty"`
}

// A RootKind says where a file tree comes from.
type RootKind string

const (
	// RootHost is this machine's own system directories, read-only, with a
	// private home and private temporary directories. Homes and credentials
	// of the host are not visible. On a tier that brings a system of its own
	// (it lacks CanRootHost and has no CanPrograms) it is that system.
	RootHost RootKind = ""
	// RootDir is a host directory that holds a whole file tree. It is never
	// written: changes go to a private layer.
	RootDir RootKind = "dir"
	// RootOpen is the whole host file tree, as the caller's policy allows it
	// to be read and written. It is only for callers who ask for less
	// isolation by name.
	RootOpen RootKind = "open"
	// RootSnapshot is the files of a snapshot that this driver knows.
	RootSnapshot RootKind = "snapshot"
)

// A Root is the source of a sandbox's file tree.
type Root struct {
	Kind RootKind `json:"kind,omitempty"`
	Path string   `json:"path,omitempty"` // of RootDir: absolute, on the host

	Snapshot SnapshotID `json:"snapshot,omitempty"` // of RootSnapshot
}

// A Mount makes a host directory or file appear inside a sandbox.
type Mount struct {
	Source string `json:"source"`           // absolute path on the host; must exist
	Target string `json:"target,omitempty"` // absolute path inside; empty is Source
	Write  bool   `json:"write,omitempty"`  // changes reach the host, but for protected names

	// Overlay lets the sandbox change what it sees of the source, in a layer
	// of its own that vanishes with it: nothing reaches the host. It excludes
	// Write.
	Overlay bool `json:"overlay,omitempty"`
}

// Limits bound a sandbox as a whole. Zero means the driver's default, never
// "no limit". Negative values are invalid.
type Limits struct {
	Memory int64   `json:"memory,omitempty"` // bytes of RAM, including files in memory
	CPUs   float64 `json:"cpus,omitempty"`   // processors' worth of time
	PIDs   int     `json:"pids,omitempty"`   // processes and threads
	Disk   int64   `json:"disk,omitempty"`   // bytes of the private writable layer
	Files  int     `json:"files,omitempty"`  // open files of one process
	IO     int64   `json:"io,omitempty"`     // bytes per second, read and written, each; zero is not limited: the one limit whose default is none

	// Lifetime ends the sandbox's commands: each is killed when it has run
	// this long, unless Cmd.Timeout is shorter. Zero is no bound.
	Lifetime time.Duration `json:"lifetime,omitempty"`
}

// A Policy is what a sandbox may touch beyond its own files.
type Policy struct {
	Files   FilePolicy    `json:"files,omitzero"`
	Network NetworkPolicy `json:"network,omitzero"`

	// Audit names the kinds of events that are recorded of every process in the
	// sandbox. Empty is what the tier records anyway: AuditExec, where it can
	// record at all (CanAudit). A tier that cannot answers Unsupported, and so
	// does a driver that has nowhere to record to. It changes nothing of what is
	// allowed; AuditOpen makes each opening of a file slower.
	Audit []AuditKind `json:"audit,omitempty"`
}

// An AuditKind is something that a process does and that can be recorded.
type AuditKind string

const (
	AuditExec    AuditKind = "exec"    // it begins to run a program
	AuditOpen    AuditKind = "open"    // it opens a file, or tries to
	AuditConnect AuditKind = "connect" // it asks for a connection
	AuditClone   AuditKind = "clone"   // it makes another process
	AuditExit    AuditKind = "exit"    // it ends

	// AuditNetwork is what the way out decides and carries. It is recorded by
	// every tier that has NetworkList, and by itself.
	AuditNetwork AuditKind = "network"
)

// AuditKinds lists them all.
func AuditKinds() []AuditKind {
	return []AuditKind{AuditExec, AuditOpen, AuditConnect, AuditClone, AuditExit, AuditNetwork}
}

// A FilePolicy narrows what mounts and the root give. Patterns are absolute
// paths inside the sandbox; deny wins over any mount.
type FilePolicy struct {
	// DenyRead are paths that can be neither read nor listed nor written.
	DenyRead []string `json:"deny_read,omitempty"`
	// DenyWrite are paths that cannot be written, made, renamed or removed.
	DenyWrite []string `json:"deny_write,omitempty"`
	// Protect adds protected names to the built-in ones; see
	// docs/ARCHITECTURE.md for the grammar (path suffixes such as
	// ".git/hooks" or ".envrc", at any depth of a writable mount).
	Protect []string `json:"protect,omitempty"`
	// Unprotect takes built-in protected names away, each by its exact text.
	Unprotect []string `json:"unprotect,omitempty"`
}

// A NetworkMode is the first question about the network.
type NetworkMode string

const (
	// NetworkNone is no way out at all.
	NetworkNone NetworkMode = ""
	// NetworkList is one way out, and the rules decide. An empty list of
	// rules allows nothing.
	NetworkList NetworkMode = "list"
	// NetworkHost is the host's own network, without any control. It is only
	// for callers who ask for less isolation by name.
	NetworkHost NetworkMode = "host"
)

// A NetworkPolicy says what a sandbox can reach.
type NetworkPolicy struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Rules decide with NetworkList. A deny that matches wins over every allow;
	// of the allows the first that matches counts, with all that it says. What
	// none allows is denied.
	Rules []NetworkRule `json:"rules,omitempty"`
	// Secrets are put into requests on their way out, for their hosts alone.
	Secrets []Secret `json:"secrets,omitempty"`
}

// A NetworkRule allows or denies a destination, or some requests to it. A rule
// that says anything of requests (Scheme to Headers) is about HTTP alone; for it,
// and for what is done to requests, connections to its hosts are looked into,
// TLS with a certificate that only this sandbox trusts.
type NetworkRule struct {
	Deny  bool     `json:"deny,omitempty"`
	Host  string   `json:"host"`            // exact name, "*.suffix", address, CIDR or "*"
	Ports []uint16 `json:"ports,omitempty"` // empty is 443 and 80, of UDP 443, and 0 alone is every one; with Deny, empty is every one
	UDP   bool     `json:"udp,omitempty"`   // datagrams, and not connections; a Deny without it is about both

	// What requests it is about. Empty is any. A pattern of Paths is matched
	// with the whole path, "*" stands for characters of one part of it, "**" for
	// any; a value of Query and Headers is a whole value, or "*" for any, and
	// each name that is listed must be there.
	Scheme  string            `json:"scheme,omitempty"` // "http" or "https"
	Methods []string          `json:"methods,omitempty"`
	Paths   []string          `json:"paths,omitempty"`
	Query   map[string]string `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// What is done with what it allows; nothing of it goes with Deny or UDP, but
	// for Limits, which goes with UDP.
	Inspect       bool              `json:"inspect,omitempty"` // look into TLS though nothing else asks for it
	Limits        *NetworkLimits    `json:"limits,omitempty"`
	SetHeaders    map[string]string `json:"set_headers,omitempty"` // replace those of the request
	RemoveHeaders []string          `json:"remove_headers,omitempty"`
	Proxy         string            `json:"proxy,omitempty"`  // URL of an upstream proxy: http, https or socks5
	Answer        *NetworkAnswer    `json:"answer,omitempty"` // given in place of the destination's, which is never asked
}

// NetworkLimits bound what one rule allows in the life of a sandbox. Zero is no
// bound.
type NetworkLimits struct {
	Requests int64 `json:"requests,omitempty"` // requests, or connections that are not looked into
	Bytes    int64 `json:"bytes,omitempty"`    // both directions together
	Rate     int64 `json:"rate,omitempty"`     // bytes per second, each direction, of all connections together
}

// A NetworkAnswer is a response that is always the same.
type NetworkAnswer struct {
	Status  int               `json:"status,omitempty"` // zero is 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// A SecretPlace is a part of a request.
type SecretPlace string

const (
	SecretHeader SecretPlace = "header" // values of headers, with what Basic authorization holds
	SecretQuery  SecretPlace = "query"  // the query of the URL
	SecretBody   SecretPlace = "body"   // the body, where it is text of any kind, JSON or a form
)

// A Secret is known to the host alone. In the sandbox, the variable Name holds a
// placeholder of the same kind of characters; in requests to one of Hosts, in
// inspected TLS and at one of Places, the placeholder becomes Value, and in the
// answers Value becomes the placeholder. It allows nothing by itself: rules do.
type Secret struct {
	Name  string `json:"name"`  // of an environment variable
	Value string `json:"value"` // never empty
	// Hosts are names, "*.suffix" or addresses; a port may follow after a colon,
	// else it is 443.
	Hosts  []string      `json:"hosts"`
	Places []SecretPlace `json:"places,omitempty"` // empty is header and query

	// SigV4 names the secret that holds the access key's identifier where this
	// one is the secret key of AWS: requests that the sandbox signed with the
	// placeholders are signed again. The secret key itself goes nowhere.
	SigV4 string `json:"sigv4,omitempty"`
}

// String tells all but the value, so that no log ever has it.
func (s Secret) String() string { return "secret " + s.Name }

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// An Update changes a living sandbox. Nil fields stay as they are.
type Update struct {
	Limits *Limits           `json:"limits,omitempty"`
	Policy *Policy           `json:"policy,omitempty"`
	Labels map[string]string `json:"labels,omitzero"` // replaces all labels; nil keeps them
}

// ToolchainVariables are the names of environment variables that say where a
// toolchain is installed. A tier that shows the host's system passes them on
// where that place is to be seen inside.
func ToolchainVariables() []string {
	return []string{"CONDA_PREFIX", "DOTNET_ROOT", "GOROOT", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RUSTUP_HOME", "SDKMAN_DIR", "VIRTUAL_ENV", "VOLTA_HOME"}
}
