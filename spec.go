package paddock

import (
	"cmp"
	"slices"
	"time"
)

// A Spec describes the sandbox to make. The zero Spec is the safest one: the host's system
// directories read-only, no workspace, no network, default limits.
type Spec struct {
	// ID names the sandbox. If it is empty, the driver chooses one. [ID.Valid] defines the
	// form. An ID in use is refused with [Exists].
	ID ID `json:"id,omitempty"`

	// Tier must be the driver's own, or [Auto].
	Tier Tier `json:"tier,omitempty"`

	// Root is the source of the file tree.
	Root Root `json:"root,omitzero"`

	// Mounts are host directories and files to show inside.
	Mounts []Mount `json:"mounts,omitempty"`

	// User is the user that commands run as: a name from the root's /etc/passwd, or a
	// number. Empty is the caller's own name and number, or "user" (1000) if the caller is
	// root. No user has privileges over the host.
	User string `json:"user,omitempty"`

	// Sudo provides the command `sudo`, without a password. With it, every process inside
	// may run commands as any user of the sandbox, including root. It grants no right that
	// Cmd.User does not grant to the caller. It needs [CanSudo], and without it the program
	// does not exist inside.
	Sudo bool `json:"sudo,omitempty"`

	// Env is added to the environment of every command, on top of the tier's own variables:
	// PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG, TMPDIR, those of [ToolchainVariables]
	// that name a directory visible inside, those of [CertificateVariables] that name a file
	// of certificates, and those of [InstallVariables]. No other variable of the caller is
	// passed on. [MaxEnv] bounds its size.
	Env map[string]string `json:"env,omitempty"`

	// Dir is the working directory of commands that name none. Empty is the target of the
	// first mount that is a directory, or else the home directory.
	Dir string `json:"dir,omitempty"`

	// Hostname is the host name inside. Empty is "paddock".
	Hostname string `json:"hostname,omitempty"`

	Limits Limits            `json:"limits,omitzero"`
	Policy Policy            `json:"policy,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`

	// Undo records what each command, file call and cell changes in the writable mounts of the sandbox, with the contents
	// from before, so that it can be undone: see [Journal]. It needs [CanUndo].
	Undo UndoMode `json:"undo,omitempty"`

	// Monitor makes built-in rules judge what the sandbox does. Nil is no monitor. What changes in writable mounts is
	// measured by the recorder of steps, so a monitor sets an Undo that is off to [UndoOn]. It needs [CanMonitor].
	Monitor *Monitor `json:"monitor,omitempty"`

	// Ephemeral ties the sandbox to the process that makes it. The sandbox is removed when
	// the driver is closed or when that process dies, by any cause.
	Ephemeral bool `json:"ephemeral,omitempty"`

	// AllowMissing names controls whose absence or weakness the caller accepts. Without it,
	// Create refuses if the host lacks a required control of the tier, or cannot enforce a
	// limit that the spec sets. A default limit is enforced as well as the host can, and
	// Status reports how well. AllowMissing is the only way to accept less isolation than
	// the tier promises.
	AllowMissing []Control `json:"allow_missing,omitempty"`
}

// MaxEnv is the maximum size of Spec.Env in bytes, names and values together. A larger environment is
// [Invalid]. Linux starts no program with a variable of more than 128 KiB.
const MaxEnv = 256 << 10

// InheritLimits sets each limit that s does not set to the limit of origin, the status of the sandbox
// that is forked. Origin may enforce a limit less than fully, because it is a default, or because its
// weakness was accepted by name. With accept, s inherits such a limit, and AllowMissing accepts its
// weakness. Without, s leaves such a limit to the default.
func (s *Spec) InheritLimits(origin Status, accept bool) {
	l, from := &s.Limits, origin.Limits
	weak := func(c Control) bool {
		return slices.ContainsFunc(origin.Enforced, func(f Finding) bool { return f.Control == c && f.Strength != Full })
	}
	for _, limit := range []struct {
		control  Control
		unset    bool // by s, and set at the origin
		inherits func()
	}{
		{ControlMemory, l.Memory == 0 && from.Memory != 0, func() { l.Memory = from.Memory }},
		{ControlCPU, l.CPUs == 0 && from.CPUs != 0, func() { l.CPUs = from.CPUs }},
		{ControlPIDs, l.PIDs == 0 && from.PIDs != 0, func() { l.PIDs = from.PIDs }},
		{ControlDisk, l.Disk == 0 && from.Disk != 0, func() { l.Disk = from.Disk }},
		{ControlFiles, l.Files == 0 && from.Files != 0, func() { l.Files = from.Files }},
		{ControlIO, l.IO == 0 && from.IO != 0, func() { l.IO = from.IO }},
	} {
		switch {
		case !limit.unset:
		case !weak(limit.control):
			limit.inherits()
		case accept:
			limit.inherits()
			if !slices.Contains(s.AllowMissing, limit.control) {
				s.AllowMissing = append(slices.Clip(s.AllowMissing), limit.control)
			}
		}
	}
	l.Lifetime = cmp.Or(l.Lifetime, from.Lifetime)
}

// An UndoMode says whether steps are recorded. Files outside of writable mounts are never recorded, nor are mounts that
// are single files or have Cache. [Status] tells which mounts are not.
type UndoMode string

const (
	// UndoOff records nothing.
	UndoOff UndoMode = ""
	// UndoOn records what it can. The record says what of a step cannot be undone. If nothing can be recorded any more,
	// commands run on, and Status says so.
	UndoOn UndoMode = "on"
	// UndoStrict also refuses a change that could not be undone, before it is made, with the error "Disk quota exceeded".
	// A writable mount that is a single file is [Unsupported].
	UndoStrict UndoMode = "strict"
)

// A RootKind is a kind of file tree.
type RootKind string

const (
	// RootHost shows the host's own system directories, read-only, with a private home and
	// private temporary directories. Homes and credentials of the host are not visible. A
	// tier that brings its own system (without CanRootHost and CanPrograms) shows that
	// system instead.
	RootHost RootKind = ""
	// RootDir shows a host directory that holds a whole file tree. The directory is never
	// written: changes go to a private layer.
	RootDir RootKind = "dir"
	// RootOpen shows the whole host file tree, readable and writable as the caller's policy
	// allows. It is less isolation, so the caller must ask for it by name.
	RootOpen RootKind = "open"
	// RootSnapshot shows the files of a snapshot that this driver knows.
	RootSnapshot RootKind = "snapshot"
	// RootImage shows the files of an OCI image. The image is never written: changes go to a private layer.
	// The environment and the working directory of its configuration apply where the spec names none, and so does its
	// user. Its entrypoint and command are not run.
	RootImage RootKind = "image"
)

// A Root is the source of a sandbox's file tree.
type Root struct {
	Kind RootKind `json:"kind,omitempty"`
	Path string   `json:"path,omitempty"` // for RootDir: absolute path on the host

	Snapshot SnapshotID `json:"snapshot,omitempty"` // for RootSnapshot

	// Image is for RootImage: a reference such as "python:3.13-slim", or the digest of a manifest, "sha256:…". What
	// resolves references is above the drivers, which know images by digest alone.
	Image string `json:"image,omitempty"`
}

// A Mount shows a host directory or file inside a sandbox.
type Mount struct {
	Source string `json:"source"`           // absolute path on the host; must exist
	Target string `json:"target,omitempty"` // absolute path inside; empty is Source
	Write  bool   `json:"write,omitempty"`  // changes reach the host, except under protected names

	// Overlay lets the sandbox change its view of the source, in a private layer that is
	// removed with the sandbox. No change reaches the host. Overlay excludes Write.
	Overlay bool `json:"overlay,omitempty"`

	// Cache says that the source holds only what sandboxes have put there: caches of build tools. Protected names
	// are then those of version control systems alone, because packages contain others. Cache needs Write, and
	// permits a Target in the sandbox's home: "~/.cache".
	Cache bool `json:"cache,omitempty"`
}

// Limits bound a whole sandbox. Zero selects the driver's default, never "no limit".
// Negative values are invalid.
type Limits struct {
	Memory int64   `json:"memory,omitempty"` // bytes of RAM, including files in memory
	CPUs   float64 `json:"cpus,omitempty"`   // processor time per wall time: 1.5 is one and a half processors
	PIDs   int     `json:"pids,omitempty"`   // processes and threads
	Disk   int64   `json:"disk,omitempty"`   // bytes of the private writable layer
	Files  int     `json:"files,omitempty"`  // open files of one process

	// IO limits the bytes read, and the bytes written, per second. It is the only limit whose default
	// is no limit.
	IO int64 `json:"io,omitempty"`

	// Lifetime bounds the commands of the sandbox: each is killed when it has run this
	// long, unless Cmd.Timeout is shorter. Zero sets no bound.
	Lifetime time.Duration `json:"lifetime,omitempty"`
}

// A Policy defines what a sandbox may use beyond its own files.
type Policy struct {
	Files   FilePolicy    `json:"files,omitzero"`
	Network NetworkPolicy `json:"network,omitzero"`

	// Audit names the kinds of events to record for every process in the sandbox. Empty
	// records AuditExec on a tier that has CanAudit, and nothing on others. If the tier
	// cannot record a kind, or the driver has nowhere to record to, Create returns
	// Unsupported. Audit does not change what is allowed. AuditOpen makes each opening of a
	// file slower.
	Audit []AuditKind `json:"audit,omitempty"`

	// KeyAgents are the key agents of the caller that commands may use, at most one of each kind. It
	// needs [CanForwardAgent], and cannot change while the sandbox lives.
	KeyAgents []KeyAgent `json:"key_agents,omitempty"`
}

// A KeyAgentKind is a kind of program that holds private keys and uses them for other programs.
type KeyAgentKind string

const (
	// KeyAgentSSH is an agent of the SSH protocol. Commands find it by the variable SSH_AUTH_SOCK.
	KeyAgentSSH KeyAgentKind = "ssh"
	// KeyAgentGPG is the agent of GnuPG, reached by the socket that GnuPG calls "extra". Commands find it
	// at .gnupg/S.gpg-agent in the home.
	KeyAgentGPG KeyAgentKind = "gpg"
)

// A KeyAgent lets commands use the keys of an agent on the host, and learn their public parts and comments. They can
// sign, and with gpg decrypt, whatever they want while the sandbox lives. They cannot read, add, remove or lock keys.
// Each use is recorded before the command has the answer. An ephemeral sandbox of a driver without a record has none.
type KeyAgent struct {
	Kind KeyAgentKind `json:"kind"`

	// Socket is the absolute path of the agent's Unix socket on the host, without a symbolic link.
	// It must belong to the caller, and no writable mount may show it.
	Socket string `json:"socket"`

	// Keys restricts the sandbox to these keys of the agent. Empty is all. A key of ssh is named by its
	// fingerprint ("SHA256:…") or its comment, a key of gpg by its keygrip in hexadecimal.
	Keys []string `json:"keys,omitempty"`
}

// An AuditKind is a kind of event that can be recorded.
type AuditKind string

const (
	AuditExec    AuditKind = "exec"    // the process executes a program
	AuditOpen    AuditKind = "open"    // the process opens a file, or tries to
	AuditConnect AuditKind = "connect" // the process asks for a connection
	AuditClone   AuditKind = "clone"   // the process creates another process
	AuditExit    AuditKind = "exit"    // the process ends

	// AuditNetwork is a decision of the gateway, or a connection that it carried. Every
	// tier with NetworkList records it without being asked.
	AuditNetwork AuditKind = "network"

	// AuditKeyAgent is a use of a key agent of the caller, or a refused request to one. Every
	// tier with CanForwardAgent records it without being asked.
	AuditKeyAgent AuditKind = "key-agent"
)

// OfProcess reports whether an event of this kind is an action of a process that the sandbox's kernel reports, which
// needs [CanAudit]. The other events come from the host's side of a sandbox.
func (k AuditKind) OfProcess() bool { return k != AuditNetwork && k != AuditKeyAgent }

// AuditKinds returns all kinds.
func AuditKinds() []AuditKind {
	return []AuditKind{AuditExec, AuditOpen, AuditConnect, AuditClone, AuditExit, AuditNetwork, AuditKeyAgent}
}

// A FilePolicy restricts what mounts and the root show. Patterns are absolute paths inside
// the sandbox. A deny overrides every mount.
type FilePolicy struct {
	// DenyRead lists paths that cannot be read, listed or written.
	DenyRead []string `json:"deny_read,omitempty"`
	// DenyWrite lists paths that cannot be written, created, renamed or removed.
	DenyWrite []string `json:"deny_write,omitempty"`
	// Protect adds protected names to the built-in ones: path suffixes such as ".git/hooks"
	// or ".envrc", at any depth of a writable mount. docs/reference/policy.md describes
	// them.
	Protect []string `json:"protect,omitempty"`
	// Unprotect removes built-in protected names, each by its exact text.
	Unprotect []string `json:"unprotect,omitempty"`
}

// A NetworkMode selects how much of the network a sandbox may use.
type NetworkMode string

const (
	// NetworkNone gives no network access.
	NetworkNone NetworkMode = ""
	// NetworkList gives access through the gateway, which applies the rules. An empty list
	// of rules allows nothing.
	NetworkList NetworkMode = "list"
	// NetworkHost gives the host's own network without any control. It is less isolation,
	// so the caller must ask for it by name.
	NetworkHost NetworkMode = "host"
)

// A NetworkPolicy defines which destinations a sandbox can reach.
type NetworkPolicy struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Rules apply with NetworkList. A deny that matches overrides every allow. Among the
	// allows, the first that matches applies, with all its options. A destination that no
	// rule allows is denied.
	Rules []NetworkRule `json:"rules,omitempty"`
	// Secrets are put into requests outside the sandbox, and only for their own hosts.
	Secrets []Secret `json:"secrets,omitempty"`
}

// LoopbackHost is the name that stands for the loopback addresses of the machine that makes the
// sandbox, 127.0.0.1 and ::1. It is resolved nowhere. The only rule that allows it is one of
// connections whose host is this very name and that lists ports; it allows these ports alone.
const LoopbackHost = "host.docker.internal"

// A NetworkRule allows or denies a destination, or some requests to it. A rule with a
// condition on requests (Scheme to Headers) applies to HTTP alone. For such a rule, and for
// a rule that changes requests, the gateway inspects connections to its hosts. It inspects
// TLS with a certificate that only this sandbox trusts.
type NetworkRule struct {
	Deny bool   `json:"deny,omitempty"`
	Host string `json:"host"` // exact name, "*.suffix", address, CIDR, "*" or LoopbackHost

	// Ports are the ports of the destination, and 0 alone means every port. Empty means 443 and 80,
	// with UDP 443, and with Deny every port.
	Ports []uint16 `json:"ports,omitempty"`

	// UDP makes the rule apply to datagrams instead of connections. A Deny without UDP applies to both.
	UDP bool `json:"udp,omitempty"`

	// Conditions on the request. Empty matches every request. A pattern in Paths must match
	// the whole path: "*" matches characters within one segment, "**" matches any
	// characters. A value in Query or Headers must match the whole value, or is "*" for any
	// value. Every listed name must be present.
	Scheme  string            `json:"scheme,omitempty"` // "http" or "https"
	Methods []string          `json:"methods,omitempty"`
	Paths   []string          `json:"paths,omitempty"`
	Query   map[string]string `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// Options for the traffic that the rule allows. None is valid with Deny. Of them only
	// Limits is valid with UDP.
	Inspect       bool              `json:"inspect,omitempty"` // inspect TLS even if no condition or option needs it
	Limits        *NetworkLimits    `json:"limits,omitempty"`
	SetHeaders    map[string]string `json:"set_headers,omitempty"` // replace the headers of the request
	RemoveHeaders []string          `json:"remove_headers,omitempty"`
	Proxy         string            `json:"proxy,omitempty"`  // URL of an upstream proxy: http, https or socks5
	Answer        *NetworkAnswer    `json:"answer,omitempty"` // given instead of contacting the destination
}

// NetworkLimits bound what one rule allows during the life of a sandbox. Zero sets no
// bound.
type NetworkLimits struct {
	Requests int64 `json:"requests,omitempty"` // requests, or connections without inspection
	Bytes    int64 `json:"bytes,omitempty"`    // both directions together
	Rate     int64 `json:"rate,omitempty"`     // bytes per second for each direction, over all connections
}

// A NetworkAnswer is a fixed response.
type NetworkAnswer struct {
	Status  int               `json:"status,omitempty"` // zero is 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// A SecretPlace is a part of a request that may hold a secret.
type SecretPlace string

const (
	SecretHeader SecretPlace = "header" // values of headers, including inside Basic authorization
	SecretQuery  SecretPlace = "query"  // the query of the URL
	SecretBody   SecretPlace = "body"   // the body, if it is text, JSON or a form
)

// A Secret is a value that only the host knows. In the sandbox, the environment variable
// Name holds a placeholder made of the same kinds of characters. In inspected requests to
// one of Hosts, the gateway replaces the placeholder with Value at each of Places. In
// responses it replaces Value with the placeholder. A secret does not allow any connection:
// only rules do.
type Secret struct {
	Name  string `json:"name"`  // of an environment variable
	Value string `json:"value"` // never empty
	// Hosts are names, "*.suffix" or addresses, each with an optional ":port". The default
	// port is 443.
	Hosts  []string      `json:"hosts"`
	Places []SecretPlace `json:"places,omitempty"` // empty is header and query

	// SigV4 makes this secret an AWS secret key. It names the secret that holds the
	// identifier of the access key. The gateway signs requests again that the sandbox
	// signed with the placeholders. The secret key itself is never sent.
	SigV4 string `json:"sigv4,omitempty"`

	// End is what the placeholder ends with: up to 32 letters and digits, for a program that
	// remembers keys by their ends. What comes before is made anew for each sandbox. Empty is
	// no such end.
	End string `json:"end,omitempty"`
}

// String returns the name without the value, so that a log never holds the value.
func (s Secret) String() string { return "secret " + s.Name }

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// An Update changes an existing sandbox. Nil fields stay as they are. The network of a sandbox
// that was made with NetworkList can change to other rules, to NetworkNone and back.
type Update struct {
	Limits *Limits           `json:"limits,omitempty"` // a limit of zero stays as it is
	Policy *Policy           `json:"policy,omitempty"`
	Labels map[string]string `json:"labels,omitzero"` // replaces all labels; nil keeps them
}

// CertificateVariables returns the names of environment variables that point to a file of
// trusted certificates. A tier that shows the host's system shows the files that the caller's
// variables name, and passes the variables on.
func CertificateVariables() []string {
	return []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS", "DENO_CERT"}
}

// InstallVariables returns the names of environment variables by which a tier that shows the
// host's system gives a writable place to programs that install others: npm, pip, uv, go and
// cargo. Some of them are set only if the place that the program chooses cannot be written.
func InstallVariables() []string {
	return []string{"NPM_CONFIG_PREFIX", "PIP_BREAK_SYSTEM_PACKAGES", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "GOBIN", "CARGO_INSTALL_ROOT"}
}

// ToolchainVariables returns the names of environment variables that point to the
// installation of a toolchain. A tier that shows the host's system passes on those whose
// directory is visible inside, at least in part.
func ToolchainVariables() []string {
	return []string{"CONDA_PREFIX", "DOTNET_ROOT", "GOROOT", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RUSTUP_HOME", "SDKMAN_DIR", "VIRTUAL_ENV", "VOLTA_HOME"}
}
