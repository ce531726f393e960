package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

// A layer says which packages of this module a package may import, besides
// the vocabulary (".", which all may), and why it stands where it stands.
// Tests may import more: they stand outside.
type layer struct {
	name    string
	imports []string // "*" is all
	why     string
}

func layers() []layer {
	return slices.Concat(simLayers(), []layer{
		{".", nil, "the vocabulary: all speak it, so it leans on none"},
		{"internal/sys", nil, "wrappers of system calls, usable by guest and host"},
		{"internal/protect", nil, "pure, and linked into the guest"},
		{"internal/gitconfigcheck", nil, "pure, and linked into the guest"},
		{"internal/allowance", nil, "pure: budgets and what is used of them, for files, flags and messages alike"},
		{"internal/buildcache", []string{"internal/sys"}, "directories on the disk, each its workspace's; it knows no tier"},
		{"internal/volume", []string{"internal/buildcache", "internal/sys"}, "directories on the disk, each with its lock; it knows no tier"},
		{"internal/agentprofile", []string{"internal/agentlogin", "internal/buildcache", "internal/hostroot", "internal/policy", "internal/sys", "internal/yamlfault"}, "profiles of agents, and directories that are handed to it; it knows no tier and no terminal"},
		{"internal/program", []string{"internal/sys"}, "executables that a build carries: it knows files, and not what they do"},
		{"internal/program/programtest", []string{"internal/program"}, "for tests: it builds the programs"},
		{"internal/framing", nil, "pure: bytes of messages, on both sides of a machine's ports"},
		{"internal/hostroot", nil, "pure: lists that tiers build from and policies explain with"},
		{"internal/private", []string{"internal/hostroot"}, "what a server keeps to itself, for every tier alike"},
		{"internal/image", nil, "the words that tiers and the store of images share; pure"},
		{"internal/image/layer", nil, "layers of strangers, into a directory that is handed to it"},
		{"internal/image/reference", nil, "pure: the names of images"},
		{"internal/image/shelf", []string{"internal/image", "internal/image/reference"}, "what a store has ready, for programs that start fast"},
		{"internal/image/erofs", []string{"internal/image/layer"}, "layers of strangers, into one file that is handed to it"},
		{"internal/image/registry", []string{"internal/image/reference"}, "the wire of registries: it keeps nothing, and is told where it may connect"},
		{"internal/image/dockerlogin", []string{"internal/hostroot", "internal/image/registry"}, "the caller's own credentials: for the command line alone"},
		{"internal/image/imagetest", []string{"drivertest", "internal/image", "internal/image/erofs"}, "images of tests, in the place of a store"},
		{"internal/image/signature", nil, "pure: who signed a digest"},
		{"internal/image/store", []string{"internal/image", "internal/image/erofs", "internal/image/layer", "internal/image/reference", "internal/image/registry", "internal/image/shelf", "internal/image/signature"}, "images on the disk, each its tenant's; no tier, no server and no key"},
		{"internal/image/dockerfile", []string{"internal/image"}, "pure: the text of a Dockerfile to what is to be done"},
		{"internal/image/build", []string{"internal/image", "internal/image/dockerfile", "internal/image/layer", "internal/image/store"}, "steps of a Dockerfile, by a driver and a store that are handed to it; no tier and no terminal"},
		{"internal/image/e2broot", []string{"internal/image", "internal/image/layer", "internal/image/store"}, "a form of images: what E2B's sandboxes need of one"},
		{"internal/policy", []string{"internal/allowance", "internal/egress/decide", "internal/hostroot", "internal/protect", "internal/yamlfault"}, "text to values and back; pure, so that it can be fuzzed and explained anywhere"},
		{"internal/packageregistry", []string{"internal/egress/decide"}, "the configuration of package clients, read through a file system that is handed to it"},
		{"internal/egress/decide", nil, "pure: the decision is one for every tier, and policies are explained by it"},
		{"internal/guest/guestpb", nil, "generated wire format"},
		{"internal/outputring", nil, "pure: a ring"},
		{"internal/guest/nameserver", nil, "answers hostile queries: it knows neither agent nor tier"},
		{"internal/guest/sudo", []string{"internal/sys"}, "what sudo says and the agent hears: it knows neither agent nor tier"},
		{"internal/guest", []string{"internal/guest/guestpb", "internal/guest/sudo", "internal/sys", "internal/outputring"}, "runs inside every tier, so it knows none"},
		{"internal/guest/guesttest", []string{"internal/guestclient", "internal/guest", "internal/guest/guestpb"}, "both sides joined, for tests"},
		{"internal/guestclient", []string{"internal/guest/guestpb"}, "the host's side shares only the wire format with the guest: it distrusts every byte"},
		{"internal/cgroup", []string{"internal/sys"}, "limits for any tier"},
		{"internal/cgroup/systemd", nil, "asks a service manager: it knows no group and no tier"},
		{"internal/keyagent", nil, "messages between a hostile program and an agent that holds keys: it knows two connections, and no sandbox"},
		{"internal/language", []string{"internal/policy"}, "what languages need, as values; pure"},
		{"internal/box", []string{"internal/image", "internal/step", "internal/private", "internal/keyagent", "internal/guestclient", "internal/audit", "internal/cgroup", "internal/boxinit", "internal/guestinit", "internal/guest/nameserver", "internal/inventory", "internal/jsonbody", "internal/egress/decide", "internal/egress/gatewayclient", "internal/guest", "internal/guest/sudo", "internal/hostroot", "internal/sys", "internal/program", "internal/protect", "internal/monitor", "internal/monitor/measure"}, "what tiers of namespaces share; it knows none of them, no server, no dialect and no policy file"},
		{"internal/box/layer", []string{"internal/box", "internal/boxinit", "internal/hostroot", "internal/snapshot", "internal/sys"}, "the private files of boxes as snapshots that every tier opens; it knows no tier"},
		{"internal/box/guestkernel", []string{"internal/box/layer", "internal/snapshot", "internal/guest", "internal/hostroot", "internal/audit", "internal/box", "internal/boxinit", "internal/guest/sudo", "internal/guestclient", "internal/guestinit", "internal/sys", "internal/program"}, "what tiers share whose commands run on a kernel of the box's own; it knows none of them"},
		{"internal/boxinit", []string{"internal/seccomp", "internal/guestinit", "internal/guest", "internal/guest/guestpb", "internal/guest/nameserver", "internal/gitconfigcheck", "internal/sys", "internal/protect"}, "a container's inside: linked into the guest, so it knows nothing of the host's side"},
		{"internal/boxinit/boxinittest", []string{"internal/boxinit", "internal/sys"}, "for tests: a guest kernel's supervisor that somebody takes over"},
		{"internal/seccomp", []string{"internal/sys"}, "tables: both sides of a kernel of the box's own have them"},
		{"internal/guestinit", []string{"internal/seccomp", "internal/guest", "internal/guest/guestpb", "internal/guest/nameserver", "internal/guest/sudo", "internal/sys", "internal/framing"}, "the agent on a kernel of the box's own: linked into the guest likewise"},
		{"internal/driver/jail", []string{"internal/box/layer", "internal/hostroot", "internal/snapshot", "internal/image", "internal/step", "internal/private", "internal/audit", "internal/box", "internal/boxinit", "internal/egress/gatewayclient", "internal/guestclient", "internal/sys", "internal/program"}, "a tier knows no other tier"},
		{"internal/driver/gvisor", []string{"internal/box/layer", "internal/image", "internal/step", "internal/private", "internal/audit", "internal/box", "internal/box/guestkernel", "internal/driver/gvisor/procevent", "internal/egress/gatewayclient", "internal/program"}, "a tier knows no other tier; what imports gVisor is a program of its own"},
		{"internal/driver/gvisor/supervisor", []string{"internal/boxinit", "internal/guestinit", "internal/driver/gvisor/supervisor/filter", "internal/driver/gvisor/supervisor/hostwatch", "internal/driver/gvisor/supervisor/overlaysize", "internal/driver/gvisor/procevent/emitter", "internal/sys"}, "gVisor in a box: it knows the box's inside and nothing of the host's side"},
		{"internal/driver/gvisor/supervisor/filter", nil, "data for gVisor"},
		{"internal/driver/gvisor/supervisor/hostwatch", []string{"internal/boxinit"}, "looks into gVisor's own tree, and speaks with the box's init"},
		{"internal/driver/gvisor/supervisor/overlaysize", nil, "looks into gVisor's own tree"},
		{"internal/driver/gvisor/supervisor/filter/generate", []string{"internal/driver/gvisor/supervisor/filter"}, "makes that data"},
		{"internal/egress/gatewayclient", []string{"internal/audit", "internal/egress/authority", "internal/egress/decide", "internal/egress/secret/placeholder", "internal/sys"}, "the host's side of a gateway: light, so it has no network stack and inspects nothing; it knows no tier"},
		{"internal/gitlogin", []string{"internal/egress/decide", "internal/egress/gatewayclient", "internal/gitconfigcheck"}, "the login of the host's git, for the remotes of a workspace that is hostile; no tier, no terminal"},
		{"internal/agentlogin", []string{"internal/egress/decide", "internal/egress/gatewayclient", "internal/egress/secret/placeholder", "internal/sys"}, "tokens of agents, in files of the host that a profile names: what a box and a server say is hostile; no tier, no terminal"},
		{"internal/egress/endtoend", nil, "tests only: the network of a sandbox as a whole, on every tier"},
		{"internal/egress/egresstest", []string{"internal/egress/netstack", "internal/sys"}, "the guest's end of a link, for tests"},
		{"internal/egress/gateway", []string{"internal/egress/authority", "internal/egress/decide", "internal/egress/inspect", "internal/egress/netstack", "internal/egress/gatewayclient", "internal/egress/secret", "internal/sys"}, "the gateway's process: it alone joins the parts, and confines itself; it knows no tier"},
		{"internal/audit", nil, "the words of what sandboxes did: tiers tell them, and anyone keeps them"},
		{"internal/audit/chain", []string{"internal/audit"}, "it signs lines, whatever they tell; it knows one directory, which is handed to it"},
		{"internal/audit/attestation", []string{"internal/audit", "internal/audit/chain"}, "it says what a record says, and signs that; workspaces and repositories are directories that are handed to it"},
		{"internal/audit/quote", nil, "quotes of hardware, and bytes that they bind; whose they are it does not know"},
		{"internal/wrap/actionlog", []string{"internal/allowance", "internal/audit", "internal/wrap/lifetime"}, "a driver around any driver: it knows no tier, of the record only a sink, and of lifetimes that they are passed on"},
		{"internal/audit/segment", []string{"internal/audit", "internal/audit/chain"}, "files of a record, in a directory and a bucket that are handed to it"},
		{"internal/driver/gvisor/procevent", []string{"internal/audit"}, "it reads what a hostile sentry says, and needs nothing of gVisor for it"},
		{"internal/driver/gvisor/procevent/emitter", []string{"internal/audit", "internal/driver/gvisor/procevent"}, "linked into the sentry; it keeps to the rate that the host records"},
		{"internal/egress/authority", []string{"internal/egress/decide"}, "certificates: it knows patterns of hosts, and no connections"},
		{"internal/egress/secret/placeholder", nil, "pure: owners need it without what replaces placeholders"},
		{"internal/egress/secret", []string{"internal/egress/secret/placeholder"}, "streams and headers: it knows no destination, but those that it is told"},
		{"internal/egress/inspect", []string{"internal/egress/authority", "internal/egress/decide", "internal/egress/secret"}, "one connection that is inspected: its backend decides and dials"},
		{"internal/egress/netstack", []string{"internal/egress/decide", "internal/sys"}, "packets to connections, names to addresses, and what may be dialled; rules are the gateway's"},
		{"tool", nil, "tools and what bounds them: pure, so that any tier and any host can use it"},
		{"internal/archtest", nil, "rules, tests only"},
		{"internal/testrun", []string{"internal/testrun/sample"}, "a tool of the build"},
		{"internal/testrun/sample", nil, "pure but for two variables: suites of every layer ask it"},
		{"internal/agenttest", nil, "scripted models, for tests: it knows agents, and nothing of this module"},
		{"drivertest", []string{"internal/testrun/sample"}, "states promises of any driver, so it knows none"},
		{"drivertest/internal/probe", nil, "a program that drivertest copies into sandboxes"},
		{"attack", []string{"attack/internet", "attack/protocol", "internal/sys", "internal/testrun/sample"}, "knows drivers only in its tests"},
		{"attack/attacker", []string{"attack/internet", "attack/protocol"}, "the hostile program: what it needs it brings"},
		{"attack/internet", []string{"attack/protocol"}, "what lies beyond the host: knows nothing of what stands before it"},
		{"attack/protocol", nil, "what attacker and harness say to each other"},
		{"bench", []string{"*"}, "measures what is there"},
		{"distrotest", nil, "tests only: the program on machines that users have"},
		{"cmd/paddock-microvm", []string{"internal/driver/microvm/supervisor"}, "what runs machines, apart from all who do not use it"},
		{"internal/driver/microvm", []string{"internal/box/layer", "internal/image", "internal/step", "internal/private", "internal/audit", "internal/box", "internal/box/guestkernel", "internal/boxinit", "internal/driver/microvm/bootfiles", "internal/driver/microvm/protocol", "internal/egress/gatewayclient", "internal/guestclient", "internal/hostroot", "internal/sys", "internal/program"}, "a tier knows no other tier; what runs QEMU is a program of its own"},
		{"internal/driver/microvm/microvmtest", []string{"internal/driver/microvm", "internal/program", "internal/program/programtest"}, "for tests: it builds the guest program"},
		{"internal/driver/microvm/supervisor", []string{"internal/seccomp", "internal/boxinit", "internal/guestinit", "internal/driver/microvm/qemu", "internal/driver/microvm/packetrelay", "internal/driver/microvm/fileserver", "internal/driver/microvm/protocol", "internal/sys"}, "QEMU in a box: it knows the box's inside and nothing of the host's side"},
		{"internal/driver/microvm/packetrelay", []string{"internal/sys"}, "packets of a hostile machine: it knows nothing else"},
		{"internal/driver/microvm/protocol", []string{"internal/boxinit", "internal/framing"}, "words of three parties; pure"},
		{"internal/driver/microvm/bootfiles", []string{"internal/driver/microvm/protocol"}, "what machines are started with: files and programs of the host; it knows no box"},
		{"internal/driver/microvm/qemu", []string{"internal/driver/microvm/protocol", "internal/sys"}, "QEMU: it knows what a machine is, and no box"},
		{"internal/driver/microvm/fileserver", []string{"internal/boxinit", "internal/driver/microvm/protocol", "internal/sys"}, "files for a hostile machine: it knows what a bind is, what is agreed on before, and no machine"},
		{"internal/driver/microvm/vminit", []string{"internal/boxinit", "internal/guestinit", "internal/driver/microvm/protocol", "internal/guest/sudo", "internal/sys", "internal/framing"}, "a machine's first process: linked into the guest, so it knows nothing of the host's side"},
		{"cmd/paddock-guest", []string{"internal/boxinit", "internal/guestinit", "internal/driver/microvm/vminit", "internal/guest/sudo"}, "small: it is copied into every box"},
		{"cmd/paddock-gvisor", []string{"internal/driver/gvisor/supervisor"}, "gVisor, apart from all who do not use it"},
		{"cmd/paddock-keeper", []string{"internal/box", "internal/driver/gvisor", "internal/driver/jail", "internal/driver/microvm"}, "what owns a kept sandbox, apart from all that a command line and a server need"},
		{"cmd/paddock-gateway", []string{"internal/egress/gateway"}, "the way out, with a network stack, apart from all who do not use it"},
		{"cmd/paddock", []string{"*"}, "the only wiring"},
		{"cmd/paddock-server", []string{"*"}, "wiring, of the commands that open a server's state"},
		{"cmd/paddock-auxiliary", []string{"*", "internal/cli", "internal/cli/auxiliary", "internal/program"}, "wiring, of the commands that are rarely used"},
		{"cmd/internal/tiers", []string{"internal/cgroup", "internal/cgroup/systemd", "internal/cli", "internal/driver/gvisor", "internal/driver/jail", "internal/driver/microvm", "internal/driver/sim/parent", "internal/program"}, "wiring that the programs of paddock share"},
		{"internal/monitor", []string{"internal/audit"}, "it judges what others measured: it knows no tier, no sandbox and no terminal"},
		{"internal/cli", []string{"internal/image", "internal/image/shelf", "internal/agentlogin", "internal/gitlogin", "internal/agentprofile", "internal/allowance", "internal/monitor", "internal/step", "internal/private", "client", "internal/audit", "internal/audit/chain", "internal/box", "internal/buildcache", "internal/egress/decide", "internal/egress/gatewayclient", "internal/gitconfigcheck", "internal/interpreter", "internal/sys", "internal/volume", "internal/policy", "internal/program", "internal/protect", "internal/packageregistry", "internal/seatbelt", "internal/sim/budget", "internal/wrap/auto", "internal/jsonbody", "internal/agenthook", "internal/execserver", "internal/hostroot", "internal/language", "internal/monitor/measure", "internal/settingsfile"}, "commands that start fast: no tier, no server and no database"},
		{"internal/cli/serve", []string{"internal/private", "client", "internal/audit", "internal/audit/chain", "internal/audit/segment", "internal/cli", "internal/dialect", "internal/dialect/daytona", "internal/dialect/e2b", "internal/dialect/e2b/codeinterpreter", "internal/dialect/e2b/envd", "internal/egress/decide", "internal/egress/netstack", "internal/image/e2broot", "internal/image/registry", "internal/image/signature", "internal/image/store", "internal/ingress", "internal/ingress/certificate", "internal/ingress/access", "internal/key", "internal/metric", "internal/policy", "internal/server", "internal/server/api", "internal/store", "internal/tracing", "internal/usage", "internal/wrap/actionlog", "internal/wrap/admission", "internal/wrap/auto", "internal/wrap/infocache", "internal/wrap/observe", "internal/wrap/lifetime", "internal/wrap/pool", "internal/wrap/tenant", "internal/yamlfault", "internal/monitor", "internal/wrap/verdict", "internal/image", "internal/image/reference", "internal/mcpserver"}, "a server's parts, but for its tiers"},
		{"internal/cli/auxiliary", []string{"internal/image", "internal/audit", "internal/audit/attestation", "internal/audit/chain", "internal/audit/quote", "internal/audit/segment", "internal/cli", "internal/driver/microvm/bootfiles", "internal/driver/microvm/protocol", "internal/egress/decide", "internal/image/dockerlogin", "internal/image/signature", "internal/image/store", "internal/sim/command/python", "internal/step", "internal/image/registry", "client", "internal/image/reference", "internal/image/build", "internal/image/dockerfile", "internal/image/shelf", "internal/policy", "internal/private", "internal/volume", "internal/mcpclient", "internal/mcpserver"}, "commands that are rarely used, and what they take"},
		{"internal/monitor/measure", []string{"internal/monitor", "internal/step"}, "what the recorder of steps tells, as a monitor judges it: values, and files that are counted"},
		{"internal/cli/fake", nil, "a driver for tests of the command line"},
		{"internal/cli/clitest", []string{"internal/audit", "internal/cli", "internal/cli/fake"}, "the command line inside of tests"},
		{"sim", []string{"internal/driver/sim", "internal/sim/budget", "tool"}, "the tier's face for Go programs: it adds words and no behaviour"},
		{"internal/wrap/admission", []string{"internal/sys"}, "a driver around any driver: it knows no tier, and of the machine only how much is left"},
		{"internal/wrap/lifetime", []string{"internal/allowance"}, "a driver around any driver: it knows no tier and no database, only a small interface for its records"},
		{"internal/wrap/lifetime/lifetimetest", []string{"internal/allowance", "internal/wrap/lifetime"}, "promises for the tests of tiers"},
		{"internal/wrap/verdict", []string{"internal/audit"}, "a driver around any driver: it knows no tier and no record, only whom it tells"},
		{"internal/wrap/infocache", nil, "a driver around any driver of one tier: it knows no tier"},
		{"internal/wrap/pool", nil, "a driver around any driver: it knows no tier, and can be put around a wrapper too"},
		{"internal/wrap/auto", []string{"internal/inventory"}, "a driver of several: it knows tiers by name, so that a server knows one driver and no tier"},
		{"internal/store", nil, "a database: it knows what is kept, and neither drivers nor servers"},
		{"internal/store/storetest", []string{"internal/store"}, "the databases, for tests"},
		{"internal/key", []string{"internal/store"}, "who a caller is: it knows no request and no sandbox"},
		{"internal/wrap/tenant", []string{"internal/allowance", "internal/wrap/lifetime", "internal/store"}, "a driver around any driver: it knows no tier and no server, and of lifetimes that they are passed on"},
		{"internal/usage", []string{"internal/store", "internal/yamlfault"}, "it counts what any driver tells; no tier and no server"},
		{"internal/wrap/observe", nil, "it tells observers of a driver's calls: it knows no tier and no observer"},
		{"internal/metric", []string{"internal/wrap/admission", "internal/wrap/observe", "internal/wrap/pool"}, "it counts what others tell: no tier, no server and no key"},
		{"internal/tracing", []string{"internal/wrap/observe"}, "spans of requests and calls: no tier, no server and no key"},
		{"internal/inventory", nil, "the IDs of a driver's sandboxes, whatever they are"},
		{"internal/ingress", nil, "the way in: it knows any driver's Dial, and no tier, no key and no disk"},
		{"internal/ingress/certificate", nil, "certificates: it knows names and files, and no connections"},
		{"internal/ingress/access", []string{"internal/ingress", "internal/server/api", "internal/store"}, "who may reach a port: it knows tenants' records, and no tier, no driver and no server"},
		{"internal/seatbelt", []string{"internal/protect"}, "pure: a spec as a profile of macOS, tested where there is no Mac"},
		{"internal/settingsfile", nil, "pure: the text of settings of other programs"},
		{"internal/mcpclient", []string{"internal/settingsfile"}, "pure: where clients of the Model Context Protocol have their servers, and the text of those files"},
		{"internal/mcpserver", []string{"client"}, "tools of agents over the client of a server: it knows no tier, no key and no server's inside"},
		{"internal/agenthook", []string{"internal/settingsfile"}, "pure: what agents tell their hooks, and the text of their settings"},
		{"internal/jsonbody", nil, "pure: what is wrong with JSON, for its sender"},
		{"internal/yamlfault", nil, "pure: where a text is not YAML"},
		{"internal/server/api", []string{"internal/allowance", "internal/jsonbody"}, "what server and client say to each other; pure"},
		{"internal/execserver", nil, "Codex's tools in any sandbox: it knows no tier and no server"},
		{"internal/interpreter", nil, "code in any sandbox: it knows no tier and no server"},
		{"internal/dialect/e2b/codeinterpreter", []string{"internal/interpreter", "internal/jsonbody"}, "translation of what the interpreter tells: it knows one sandbox, and neither tiers nor servers"},
		{"internal/server", []string{"internal/allowance", "internal/interpreter", "internal/wrap/lifetime", "internal/server/api"}, "any driver over HTTP: it knows no tier, no key and no disk; of lifetimes, what a driver may have beside"},
		{"client", []string{"internal/allowance", "internal/server/api"}, "a driver whose sandboxes are a server's: it shares the words with it, and nothing else"},
		{"internal/dialect", []string{"internal/wrap/lifetime", "internal/jsonbody"}, "what dialects need in common"},
		{"internal/dialect/daytona", []string{"internal/dialect", "internal/interpreter", "internal/wrap/lifetime", "internal/jsonbody"}, "translation: it knows drivers with terms; no server, no key, no database"},
		{"internal/dialect/e2b", []string{"internal/dialect", "internal/ingress", "internal/wrap/lifetime", "internal/jsonbody"}, "translation: it knows drivers with terms, the way to ports, and what answers inside a sandbox only by an interface; no server, no key, no database"},
		{"internal/dialect/e2b/envd", []string{"internal/dialect/e2b", "internal/dialect/e2b/envd/envdpb", "internal/jsonbody"}, "E2B's in-box API over any sandbox: it knows no tier and no server, and of the API outside how addresses of files are signed"},
		{"internal/dialect/e2b/envd/envdpb", nil, "generated wire format"},
		{"internal/step", []string{"internal/gitconfigcheck", "internal/protect", "internal/snapshot", "internal/sys"}, "what commands changed in directories that are handed to it, and the way back: it knows no tier, and trusts no report"},
		{"internal/step/steptest", []string{"internal/audit", "internal/step"}, "the promises of undo, for the tests of each tier"},
		{"internal/snapshot", nil, "pure but for its own directory: every tier opens what another kept"},
	})
}

// simLayers are the packages of the simulated tier. Those below internal/sim are
// the engine, and import nothing outside of it.
func simLayers() []layer {
	const sim = "internal/sim/"
	below := func(names ...string) []string {
		for i, n := range names {
			names[i] = sim + n
		}
		return names
	}
	list := []layer{
		{sim + "arith", nil, "an engine: it knows numbers, and asks for variables"},
		{sim + "budget", nil, "counts; everything that grows leans on it"},
		{sim + "linux", nil, "numbers of Linux as programs see them, the same on every host"},
		{sim + "pattern", nil, "an engine: text to text"},
		{sim + "quote", nil, "text to text"},
		{sim + "regex", nil, "an engine: what it costs is told to the caller's meter"},
		{sim + "strftime", nil, "text to time and back"},
		{sim + "printf", below("quote"), "an engine, of the builtin and of the tool"},
		{sim + "vfs", below("linux"), "files know no tasks, and no limits but numbers"},
		{sim + "kernel", below("budget", "linux", "quote", "vfs"), "the kernel knows files, and no program"},
		{sim + "condition", below("linux", "vfs"), "what test and [ ask of files"},
		{sim + "shell/variable", below("budget"), "variables know the shell by what they need of it"},
		{sim + "shell/expand", below("arith", "kernel", "linux", "pattern", "quote", "regex", "shell/variable", "vfs"), "words know the shell by what they need of it"},
		{sim + "shell/parse", below("shell/expand"), "syntax; words are compiled once, while they are read"},
		{sim + "shell/readline", below("command"), "an editor of lines knows no shell"},
		{sim + "shell", below("budget", "condition", "kernel", "linux", "printf", "quote", "shell/expand", "shell/parse", "shell/readline", "shell/variable", "strftime", "vfs"), "the shell knows no tool: it starts programs by name"},
		{sim + "command", below("kernel", "linux", "quote", "regex", "vfs"), "what a tool is, and what tools of several kinds share"},
		{sim + "command/commandtest", below("budget", "command", "kernel", "linux", "vfs"), "the referee, for tests"},
		{sim + "command/ripgrep/gitignore", below("kernel", "linux", "pattern", "regex", "vfs"), "what rg passes over"},
		{sim + "command/javascript/quickjs", nil, "JavaScript without a world: what it may reach is handed to it"},
		{"internal/driver/sim/snapshotentry", append(below("vfs"), "internal/snapshot"), "the engine's changes as entries of stored snapshots, and back"},
		{"internal/driver/sim/toolcommand", append(below("command", "command/javascript", "kernel", "linux"), "tool"), "the caller's tools as commands"},
		{"internal/driver/sim/parent/encoding", nil, "bytes of Go values"},
		{"internal/driver/sim/description", []string{"internal/sim/budget", "internal/snapshot"}, "what a computer can do, without one: for who only asks"},
		{"internal/driver/sim/parent", []string{"internal/private", "internal/audit", "internal/driver/sim/parent/protocol", "internal/driver/sim/description", "internal/egress/gatewayclient", "internal/guestclient", "internal/hostroot", "internal/sys", "internal/program", "internal/inventory", "internal/sim/budget", "internal/snapshot"}, "the host's side of a child process: it distrusts what that says, and knows nothing of the engine"},
		{"internal/driver/sim/parent/protocol", []string{"internal/private", "internal/driver/sim/parent/encoding", "internal/sim/budget", "internal/snapshot"}, "what host and child say to each other"},
		{"internal/driver/sim/child", []string{"internal/driver/sim", "internal/driver/sim/parent/protocol", "internal/egress/gatewayclient", "internal/guest", "internal/guest/guestpb", "internal/sys", "internal/sim/command/python"}, "the child's side: it answers as a guest does, with the engine inside"},
		{"cmd/paddock-sim", []string{"internal/driver/sim/child"}, "the process of a simulated computer"},
	}
	parts := below("command", "condition", "kernel", "linux", "pattern", "printf", "quote", "regex", "strftime", "vfs")
	driver := layer{"internal/driver/sim", append(below("budget", "command", "kernel", "linux", "shell", "vfs"), "internal/driver/sim/description", "internal/hostroot", "internal/private", "internal/driver/sim/snapshotentry", "internal/driver/sim/toolcommand", "internal/egress/decide", "internal/outputring", "internal/inventory", "internal/snapshot", "tool"), "a tier knows no other tier, no server and no policy file; it alone joins shell and tools"}
	extra := map[string][]string{
		"file":       below("command/sort"), // ls sorts versions as sort does
		"grep":       below("command/ripgrep"),
		"javascript": below("budget", "command/javascript/quickjs"),
		"python":     below("budget"),
		"ripgrep":    below("command/ripgrep/gitignore"),
	}
	for _, kind := range toolKinds() {
		list = append(list, layer{sim + "command/" + kind, append(slices.Clone(parts), extra[kind]...), "tools of one kind know none of another, nor the shell"})
		driver.imports = append(driver.imports, sim+"command/"+kind)
	}
	return append(list, driver)
}

// toolKinds are the packages of tools.
func toolKinds() []string {
	return []string{
		"archive", "awk", "calc", "column", "date", "diff", "encode", "fetch", "file", "find", "git", "grep", "javascript", "jq", "number",
		"process", "python", "ripgrep", "sed", "sort", "sqlite", "text", "xan",
	}
}

func TestEveryPackageStandsInItsLayer(t *testing.T) {
	packages := list(t)
	table := layers()
	for _, l := range table {
		if packages.get(l.name) == nil {
			t.Errorf("%s has a row in layers and is not there", l.name)
		}
	}
	for _, name := range packages.own() {
		i := slices.IndexFunc(table, func(l layer) bool { return l.name == name })
		if i < 0 {
			t.Errorf("%s has no row in layers: say what it may import, and why", name)
			continue
		}
		l := table[i]
		if l.why == "" {
			t.Errorf("%s: its row has no reason", name)
		}
		for _, path := range packages.get(name).Imports {
			other, ours := below(path)
			if !ours || other == "." || slices.Contains(l.imports, "*") || slices.Contains(l.imports, other) {
				continue
			}
			t.Errorf("%s imports %s: not in its row of layers (%s)", name, other, l.why)
		}
	}
}

// A foreign package is one from outside that some of ours may import.
type foreign struct {
	path string // it, and all below it
	by   []string
	why  string
}

func foreigners() []foreign {
	return []foreign{
		{"gvisor.dev/gvisor", []string{"internal/driver/gvisor/supervisor", "internal/driver/gvisor/supervisor/filter", "internal/driver/gvisor/supervisor/filter/generate", "internal/driver/gvisor/supervisor/hostwatch", "internal/driver/gvisor/supervisor/overlaysize", "internal/driver/gvisor/procevent/emitter", "internal/egress/egresstest", "internal/egress/netstack"}, "gVisor takes milliseconds to initialise; nobody else is to pay"},
		{"golang.org/x/sys/unix", []string{"internal/sys", "attack/attacker", "attack/internet"}, "system calls are wrapped once, where their traps are known; the attacker and its internet need them raw"},
		{"github.com/coder/websocket", []string{"internal/dialect/daytona"}, "followed logs and terminals of Daytona's clients"},
		{"connectrpc.com/connect", []string{"internal/guest/guestpb", "internal/guest", "internal/guestclient", "internal/dialect/e2b/envd", "internal/dialect/e2b/envd/envdpb", "internal/driver/sim/child"}, "RPC is the wire between guest and host, where drivers see a paddock.Sandbox, and what E2B's clients speak"},
		{"google.golang.org/protobuf", []string{"internal/guest/guestpb", "internal/guest", "internal/guestclient", "internal/dialect/e2b/envd", "internal/dialect/e2b/envd/envdpb", "internal/driver/gvisor/procevent", "internal/driver/gvisor/procevent/emitter"}, "as connect; and gVisor's trace points have its format"},
		{"github.com/hashicorp/yamux", []string{"internal/guestinit", "internal/driver/microvm/supervisor"}, "connections over a machine's port"},
		{"github.com/creack/pty", []string{"internal/guest"}, "terminals are opened inside"},
		{"github.com/fsnotify/fsnotify", []string{"internal/guest"}, "files are watched inside"},
		{"golang.org/x/term", []string{"internal/cli"}, "only the command line has a terminal of a person"},
		{"github.com/landlock-lsm/go-landlock", []string{"internal/sys"}, "its numbers and structures are system calls, and wrapped as those are"},
		{"kernel.org/pub/linux/libs/security/libcap/psx", []string{"internal/sys"}, "giving up capabilities on every thread"},
		{"github.com/containerd/cgroups", []string{"internal/cgroup"}, "one place for control groups, v1 and v2"},
		{"github.com/spf13/cobra", []string{"cmd/paddock", "internal/cli", "internal/cli/serve", "internal/cli/auxiliary"}, "a command line belongs to a command"},
		{"github.com/spf13/pflag", []string{"internal/cli", "internal/cli/auxiliary", "internal/cli/serve"}, "cobra's flags"},
		{"mvdan.cc/sh/v3/syntax", []string{"internal/sim/shell", "internal/sim/shell/expand", "internal/sim/shell/parse"}, "words of the shell, and nothing else of it"},
		{"github.com/dsnet/compress", []string{"internal/sim/command/archive"}, "formats of archives"},
		{"github.com/klauspost/compress", []string{"internal/driver/microvm/bootfiles", "internal/sim/command/archive", "internal/image/layer"}, "as above; and kernels, packages and layers of images, which are packed so"},
		{"github.com/erofs/go-erofs", []string{"internal/box", "internal/image/build"}, "the accounts and certificates of an image are read before anything is mounted"},
		{"github.com/google/go-containerregistry", []string{"bench", "internal/image/registry", "internal/image/store"}, "the wire of registries, below the guard and the bounds of that package"},
		{"github.com/moby/buildkit", []string{"internal/image/dockerfile"}, "the text of Dockerfiles, below bounds of our own"},
		{"github.com/moby/patternmatcher", []string{"internal/cli/auxiliary", "internal/image/build"}, "patterns of .dockerignore"},
		{"github.com/ulikunitz/xz", []string{"internal/driver/microvm/bootfiles", "internal/sim/command/archive"}, "as above"},
		{"github.com/JohannesKaufmann/html-to-markdown/v2", []string{"internal/sim/command/encode"}, "one tool"},
		{"golang.org/x/crypto", []string{"internal/audit/attestation", "internal/sim/command/encode", "internal/egress/inspect", "internal/ingress/certificate"}, "keys of OpenSSH, a checksum that the standard library has not, its reader of TLS messages, and ACME"},
		{"golang.org/x/net", []string{"internal/egress/egresstest", "internal/egress/netstack"}, "messages of DNS, and the client side of SOCKS5"},
		{"golang.org/x/time", []string{"internal/egress/gateway", "internal/keyagent"}, "the rates of a rule's limits, and of requests to a key agent"},
		{"github.com/aws/aws-sdk-go-v2/aws", []string{"internal/audit/segment", "internal/egress/secret"}, "signatures of requests to AWS, and to what speaks as it does"},
		{"golang.org/x/text", []string{"internal/sim/command/encode"}, "character sets"},
		{"github.com/go-git", []string{"internal/sim/command/git"}, "one tool"},
		{"github.com/tailscale/hujson", []string{"internal/agenthook", "internal/mcpclient", "internal/settingsfile"}, "settings with comments are other programs'"},
		{"github.com/BurntSushi/toml", []string{"internal/mcpclient"}, "Codex's configuration"},
		{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcpserver"}, "the protocol of tools"},
		{"github.com/tetratelabs/wazero", []string{"internal/sim/command/python"}, "WebAssembly is one language's"},
		{"modernc.org/libc", []string{"internal/sim/command/javascript/quickjs", "internal/sim/command/sqlite"}, "under QuickJS and SQLite"},
		{"modernc.org/libquickjs", []string{"internal/sim/command/javascript/quickjs"}, "QuickJS, behind an engine without a world"},
		{"modernc.org/memory", []string{"internal/sim/command/javascript/quickjs"}, "under QuickJS"},
		{"modernc.org/sqlite", []string{"internal/sim/command/sqlite", "internal/store"}, "one tool, and the state of a server"},
		{"github.com/jackc/pgx/v5", []string{"internal/store"}, "as above, where servers share it"},
		{"github.com/opencontainers/runtime-spec", []string{"bench", "internal/driver/gvisor/supervisor"}, "how OCI runtimes are told what to run: gVisor, and the peers"},
		{"github.com/godbus/dbus/v5", []string{"internal/cgroup/systemd"}, "one service of the bus"},
		{"go.yaml.in/yaml", []string{"internal/agentprofile", "internal/cli/serve", "internal/mcpclient", "internal/policy", "internal/sim/command/jq", "internal/usage", "internal/yamlfault"}, "text formats end at the configuration, the policy, profiles of agents, prices and Goose's configuration, and one package names the lines of their faults; yq is one tool"},
		{"github.com/google/go-configfs-tsm", []string{"internal/audit/quote"}, "quotes of confidential machines are one package's"},
		{"github.com/google/go-sev-guest", []string{"internal/audit/quote"}, "as above"},
		{"github.com/google/go-tdx-guest", []string{"internal/audit/quote"}, "as above"},
		{"github.com/prometheus/client_golang", []string{"internal/metric"}, "metrics are one package's, and nobody else counts for Prometheus"},
		{"go.opentelemetry.io/otel", []string{"internal/tracing"}, "as metrics: a driver has no branch for traces"},
	}
}

func TestForeignPackagesAreImportedOnlyWhereTheyBelong(t *testing.T) {
	packages := list(t)
	table := foreigners()
	for _, name := range packages.own() {
		for _, path := range packages.get(name).Imports {
			if _, ours := below(path); ours || !strings.Contains(first(path), ".") {
				continue
			}
			i := slices.IndexFunc(table, func(f foreign) bool { return within(path, f.path) })
			if i < 0 {
				t.Errorf("%s imports %s, which has no row in foreigners: say who may, and why", name, path)
			} else if !slices.Contains(table[i].by, name) {
				t.Errorf("%s imports %s: only %s may (%s)", name, path, strings.Join(table[i].by, ", "), table[i].why)
			}
		}
	}
}

// A permission that nobody uses hides the next package that begins to.
func TestEveryForeignerIsUsed(t *testing.T) {
	packages := list(t)
	for _, f := range foreigners() {
		for _, name := range f.by {
			p := packages.get(name)
			if p == nil {
				t.Errorf("%s may be imported by %s, which is not there", f.path, name)
				continue
			}
			if !slices.ContainsFunc(p.Imports, func(path string) bool { return within(path, f.path) }) {
				t.Errorf("%s may be imported by %s, which does not: take it out of its row", f.path, name)
			}
		}
	}
}

// first gives the first element of an import path; the standard library's has
// no dot.
func first(path string) string {
	head, _, _ := strings.Cut(path, "/")
	return head
}

// A barrier keeps packages from ever reaching others, however indirectly.
type barrier struct {
	from string   // one of ours
	to   []string // import paths, each with all below it
	why  string
}

func barriers() []barrier {
	return []barrier{
		{"cmd/paddock-guest", []string{
			"github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml",
			"github.com/containerd/cgroups", "gvisor.dev/gvisor", "github.com/prometheus", "go.opentelemetry.io", "google.golang.org/grpc",
			module + "/internal/guestclient", module + "/internal/cgroup", module + "/internal/policy",
		}, "the guest is small, and holds nothing of the host's side"},
		{"client", []string{"github.com/prometheus", "go.opentelemetry.io", "google.golang.org/grpc"}, "programs of others link it"},
		{"internal/box", []string{"internal/image",
			module + "/internal/driver", module + "/internal/sim", "gvisor.dev/gvisor", "net/http/httptest",
			module + "/internal/server", module + "/internal/dialect", module + "/internal/egress/netstack", module + "/internal/egress/inspect", module + "/internal/egress/gateway", module + "/internal/policy", module + "/cmd",
		}, "tiers stand on it; and who uses the jail does not pay for gVisor"},
		{"internal/driver/gvisor", []string{"internal/image",
			module + "/internal/driver/sim", module + "/internal/sim", module + "/internal/driver/jail", module + "/internal/driver/microvm", "gvisor.dev/gvisor",
			module + "/internal/server", module + "/internal/dialect", module + "/internal/policy", module + "/cmd",
		}, "as the jail; gVisor itself is in a program of its own"},
		{"internal/driver/jail", []string{"internal/image",
			module + "/internal/driver/sim", module + "/internal/sim", module + "/internal/driver/gvisor", module + "/internal/driver/microvm",
			module + "/internal/server", module + "/internal/dialect", module + "/internal/egress/netstack", module + "/internal/egress/inspect", module + "/internal/egress/gateway", module + "/internal/policy", module + "/cmd",
		}, "a tier can be taken out and put elsewhere"},
		{"internal/driver/sim", []string{
			module + "/internal/driver/jail", module + "/internal/driver/gvisor", module + "/internal/driver/microvm",
			module + "/internal/server", module + "/internal/dialect", module + "/internal/policy", module + "/cmd", module + "/internal/guestclient",
		}, "as the jail; and no host's side of a wire: it runs inside other programs"},
		{"internal/sim/shell", []string{"os/exec", "net/http"}, "a script starts nothing and reaches nobody"},
		{"internal/sim/kernel", []string{"os/exec", "net/http"}, "as above"},
		{"internal/server", []string{
			module + "/internal/driver", module + "/internal/sim", module + "/internal/box", module + "/internal/guestclient", module + "/internal/policy", module + "/cmd", "os/exec",
		}, "it serves any driver, and so depends on none"},
		{"internal/policy", []string{"net/http", "os/exec", module + "/internal/driver", module + "/internal/sys"}, "pure"},
		{"internal/protect", []string{"net", "os/exec"}, "pure"},
		{"internal/gitconfigcheck", []string{"net", "os/exec"}, "pure"},
		{"internal/wrap/tenant", []string{module + "/internal/driver", module + "/internal/sim", module + "/internal/server", module + "/internal/guestclient"}, "a wrapper adds one behaviour to any driver"},
		{"internal/egress/gatewayclient", []string{
			"github.com/aws", "net/http", "gvisor.dev/gvisor", module + "/internal/egress/netstack", module + "/internal/egress/inspect", module + "/internal/egress/gateway",
		}, "every process that owns a sandbox links it, so it must start fast"},
		{"internal/egress/decide", []string{"net/http", "os/exec", module + "/internal/policy"}, "pure"},
		{"internal/driver/gvisor/procevent", []string{"gvisor.dev/gvisor"}, "whoever reads events does not pay for gVisor"},
	}
}

func TestBarriersHold(t *testing.T) {
	packages := list(t)
	for _, b := range barriers() {
		if packages.get(b.from) == nil {
			t.Errorf("%s is not there", b.from)
			continue
		}
		for _, to := range b.to {
			if chain := packages.reach(packages.get(b.from).ImportPath, to); chain != nil {
				t.Errorf("%s reaches %s (%s):\n\t%s", b.from, to, b.why, strings.Join(chain, "\n\t"))
			}
		}
	}
}

// A ban keeps packages from importing a part of the standard library.
type ban struct {
	path   string
	except []string // packages of ours that may
	only   []string // if set, the ban holds for these alone
	why    string
}

func bans() []ban {
	return []ban{
		{path: "C", why: "no cgo: one static binary, for every architecture from any"},
		{path: "plugin", why: "as above"},
		{path: "unsafe", except: []string{"internal/sys", "attack/attacker", "drivertest/internal/probe", "internal/guest/guestpb", "internal/dialect/e2b/envd/envdpb", "internal/guest", "internal/sim/command/javascript/quickjs", "internal/driver/gvisor/supervisor/filter", "internal/driver/gvisor/supervisor/filter/generate"}, why: "memory tricks belong beside the system call that needs them; the attacker and the probe do the calls of a hostile program; internal/guest has terminals and waiting, which could move to internal/sys"},
		{path: "log", why: "libraries return; only main speaks, by log/slog or to the terminal"},
		{path: "flag", except: []string{"internal/testrun", "bench", "attack/attacker", "cmd/paddock-guest", "internal/driver/gvisor/supervisor/filter/generate"}, why: "options are values; flags belong to commands"},
		{path: "math/rand", why: "names that must not be guessed come from crypto/rand; tests use math/rand/v2 with a seed"},
		{path: "os", only: []string{".", "internal/audit", "internal/egress/decide", "internal/hostroot", "internal/policy", "internal/protect"}, why: "pure: no files, no environment"},
		{path: "os/exec", only: []string{".", "internal/audit", "internal/egress/decide", "internal/hostroot", "internal/policy", "internal/protect", "internal/guestclient"}, why: "pure: no programs"},
		{path: "net/http", only: []string{".", "internal/audit", "internal/egress/decide", "internal/hostroot", "internal/policy", "internal/protect", "internal/driver/jail"}, why: "the wire is internal/guestclient's"},
	}
}

func TestNoBannedImport(t *testing.T) {
	packages := list(t)
	for _, b := range bans() {
		for _, name := range packages.own() {
			if slices.Contains(b.except, name) || (b.only != nil && !slices.Contains(b.only, name)) {
				continue
			}
			if slices.Contains(packages.get(name).Imports, b.path) {
				t.Errorf("%s imports %s: %s", name, b.path, b.why)
			}
		}
	}
}

// standalone lists the packages that need nothing but the standard library,
// however indirectly.
func standalone() map[string]string {
	return map[string]string{
		"client":                 "programs of others link it",
		".":                      "everyone who speaks the vocabulary pays for what it needs",
		"internal/audit":         "whoever tells or keeps events pays for nothing else",
		"drivertest":             "drivers of other modules join it",
		"internal/hostroot":      "lists need nothing",
		"internal/wrap/lifetime": "a wrapper adds one behaviour, and no dependency",
		"internal/wrap/pool":     "a wrapper adds one behaviour, and no dependency",
		"internal/protect":       "it is linked into the guest",
		"internal/testrun":       "it judges, so it should not break with what it judges",
	}
}

func TestSomePackagesNeedOnlyTheStandardLibrary(t *testing.T) {
	packages := list(t)
	for name, why := range standalone() {
		for path := range packages {
			if _, ours := below(path); ours || packages[path].Standard {
				continue
			}
			if chain := packages.reach(packages.get(name).ImportPath, path); chain != nil {
				t.Errorf("%s needs %s (%s)", name, strings.Join(chain, " -> "), why)
			}
		}
	}
}
