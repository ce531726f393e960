package attack

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A Case is one row of the matrix.
type Case struct {
	ID     string
	Attack string // the attempt
	Claim  string // the claim

	// ByDesign maps the beginning of a technique's name to the reason why its success is
	// not an escape.
	ByDesign map[string]string

	// Own maps techniques in the same way whose success only reaches the sandbox's own
	// kernel, if it has one, to what they reach. Evidence on the host overrides that.
	Own map[string]string

	// Needs maps the beginning of a technique's name to the control that stops it. If the
	// host lacks the control, and Create was told to accept that, its success follows from
	// the absence and is not an escape.
	Needs map[string]paddock.Control

	// Swaps means that the host itself changes names, faster than a watch can follow.
	Swaps bool

	// Shares means that the case only looks, and that what it leaves inside does not affect
	// other cases. So one sandbox may serve many such cases.
	Shares bool

	// way has the specifics of a network row; nil for others.
	way *way

	prepare func(w *world) error            // changes the host before the sandbox is made
	spec    func(w *world, s *paddock.Spec) // changes the spec
	after   func(x *trial) []protocol.Try   // the host's part after the attack, while the sandbox exists
	host    func(x *trial) []protocol.Try   // replaces all of these
}

// technique returns the entry with the longest key that is a prefix of name, or of a part
// of name after a colon.
func technique[T any](table map[string]T, name string) (T, bool) {
	var keys []string
	for k := range table {
		if strings.HasPrefix(name, k) || strings.Contains(name, ": "+k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		var zero T
		return zero, false
	}
	slices.SortFunc(keys, func(a, b string) int { return len(b) - len(a) })
	return table[keys[0]], true
}

// Cases returns every row, in order.
func Cases() []Case {
	const (
		later     = "content of the workspace that the user runs later: read the diff first; names given to protect are denied"
		ownDir    = "the workspace is the caller's own directory; its size is the caller's to bound"
		metadata  = "times of a protected file can be set, and the mode of a file .git; nothing on the host runs or obeys them"
		ownKernel = "the sandbox's own kernel answers, about itself"
		ownMode   = "the sandbox's own kernel shows the mode as it was set; the file's is unchanged"
		ownLock   = "a lock by fcntl is of a process, so only the kernel can take it for one; a shared one stops those who want to lock for writing (docs/LIMITS.md)"
		forwarded = "--forward-agent lets commands sign anything with the keys that it names; each signature is recorded"
		published = "processor, clock and topology are visible; docs/security/threat-model.md names side channels as no boundary"
	)
	return []Case{
		{ID: "A01", Attack: "write to the home, /etc, /var/tmp, /run and other places of the host", Claim: "nothing that is written outside the workspace reaches the host"},
		{ID: "A02", Attack: "append to the shell's start files in the home", Claim: "the caller's start files stay as they are"},
		{ID: "A03", Attack: "write through links that lead out of the workspace", Claim: "a link does not lead out"},
		{ID: "A04", Attack: "plant links for the host's own tools to follow", Claim: "the file interface resolves links inside", after: followLinks},
		{ID: "A05", Attack: "swap a path with a link while the sandbox is being made", Claim: "what is denied stays denied, or Create refuses", Swaps: true, host: swapWhileCreating},
		{ID: "A06", Attack: "change what the policy denies to write", Claim: "denied for writing holds for every way of writing", Own: map[string]string{"directory: chmod": ownMode}},
		{ID: "A07", Attack: "rename what lies above a protected path and make it anew", Claim: "a protected path cannot be replaced from above"},
		{ID: "A08", Attack: "read what the policy or the hidden home denies, by every way to name it", Claim: "denied for reading holds for every name of the file"},
		{ID: "A09", Attack: "move or link what is denied to a readable name", Claim: "what is denied cannot be moved"},
		{ID: "A10", Attack: "read a denied file that was made after the start", Claim: "a rule holds for a file that comes later, or Create refuses the rule", host: lateForms},
		{ID: "A11", Attack: "write to a file of the home through a hard link in the workspace", Claim: "a hard link that is already there is found and told", prepare: plantHardlink, host: hardlink,
			ByDesign: map[string]string{"told: ": "a hard link is the file itself; the one that was there before is told in Status"}},
		{ID: "A12", Shares: true, Attack: "share /dev/shm with the host", Claim: "/dev/shm is private"},
		{ID: "A13", Attack: "share /tmp and /var/tmp with the host", Claim: "temporary directories are private"},
		{ID: "A14", Attack: "make set-id files in the workspace", Claim: "no set-id bit and no file capability reaches the host"},
		{ID: "A15", Shares: true, Attack: "make or open devices", Claim: "no device can be made, and none that matters opened", Own: map[string]string{"devices that reach the kernel": ownKernel}},
		{ID: "A16", Attack: "put FIFOs, devices and sockets where the host expects files", Claim: "the file interface does not hang or follow", after: readSpecial},
		{ID: "A17", Attack: "fill the disk, or use up its inodes", Claim: "the private layer is bounded",
			Needs:    map[string]paddock.Control{"bytes": paddock.ControlDisk, "allocate in /tmp": paddock.ControlDisk, "all places": paddock.ControlDisk, "inodes": paddock.ControlDisk},
			ByDesign: map[string]string{"unlimited:": ownDir}},
		{ID: "A18", Shares: true, Attack: "open files of the host by handle", Claim: "handles cannot be opened"},
		{ID: "A19", Attack: "unmount, remount or cover a mount", Claim: "the mount table cannot be changed"},
		{ID: "A20", Shares: true, Attack: "undo mounts in a new user namespace", Claim: "user namespaces are refused, or hold nothing back"},
		{ID: "A21", Attack: "spell protected names as another file system would fold them", Claim: "a folded name is the same name"},
		{ID: "A22", Attack: "confuse policies with slashes, dots, NUL, length and newlines", Claim: "a policy path is enforced exactly, or refused", host: strangePaths},
		{ID: "A23", Attack: "outlive the supervisor when it is killed", Claim: "kill -9 of the maker leaves no process and no mount", host: killMaker},
		{ID: "A24", Attack: "change what the next sandbox is made of", Claim: "the program, its cache and its state stay as they are below any mount", prepare: plantOwn, host: ownBelowMount},
		{ID: "A25", Attack: "plant a link where the next sandbox gets a mount from", Claim: "a source that is or leads through a link is refused", Swaps: true, prepare: plantSource, host: linkedSource},
		{ID: "A26", Attack: "change the content of a set-id program in the workspace", Claim: "a set-id program cannot be opened for writing", prepare: plantSetID},
		{ID: "A27", Attack: "change the mode or the access list of the workspace's own directory", Claim: "who may enter a mount on the host stays as it was"},

		{ID: "C01", Attack: "change hooks of the repository", Claim: "hooks cannot be made, changed or raced", ByDesign: map[string]string{"metadata:": metadata}},
		{ID: "C02", Attack: "change the repository's configuration", Claim: "configuration that names programs cannot be changed", ByDesign: map[string]string{"metadata:": metadata}},
		{ID: "C03", Attack: "change hooks of nested repositories", Claim: "protected names hold at any depth"},
		{ID: "C04", Attack: "make a repository with a hook", Claim: "a repository made inside has no hooks, and no configuration that could run anything, also a bare one"},
		{ID: "C05", Attack: "change submodules, worktrees, attributes and where git looks", Claim: "the rest of what git trusts is protected too", ByDesign: map[string]string{"metadata:": metadata}},
		{ID: "C06", Attack: "make files that shells, editors and agents trust and that are missing", Claim: "a protected name need not exist to be protected"},
		{ID: "C07", Attack: "make configuration of other agents and clouds", Claim: "so for .codex, .agents and .aws"},
		{ID: "C08", Attack: "change scripts, builds and CI that the user runs later", Claim: "names given to protect are denied; the rest is told",
			spec: protectScripts, ByDesign: map[string]string{"unasked:": later}},
		{ID: "C09", Attack: "poison programs that the host runs", Claim: "programs outside the workspace and our own cannot be changed",
			ByDesign: map[string]string{"unasked:": later}},
		{ID: "C10", Attack: "move a mount out from under the names that rules are about", Claim: "no directory above a mount can be moved", prepare: plantShared, host: mountMoved},
		{ID: "C11", Attack: "change hooks of a git directory that is a mount itself", Claim: "a protected name is judged together with where a mount comes from", host: gitMount},

		{ID: "P01", Attack: "signal, trace and read a process of the host", Claim: "processes of the host are not there"},
		{ID: "P02", Attack: "trace and read the sandbox's own init and helpers, steal a seccomp listener", Claim: "helpers cannot be taken over", Own: map[string]string{"init: user namespace": ownKernel, "init: fd": ownKernel}},
		{ID: "P03", Attack: "connect to a unix socket of the host", Claim: "sockets of the host cannot be reached", prepare: socketInWork},
		{ID: "P04", Shares: true, Attack: "connect to an abstract unix socket of the host", Claim: "abstract sockets of the host are not there"},
		{ID: "P05", Shares: true, Attack: "reach a datagram socket of the host from a socket pair", Claim: "so for sockets that socket() did not make"},
		{ID: "P06", Shares: true, Attack: "reach the hypervisor by vsock", Claim: "the family is not there"},
		{ID: "P07", Shares: true, Attack: "packet, raw, crypto and exotic socket families", Claim: "only common families are there; netlink may look and not change"},
		{ID: "P08", Shares: true, Attack: "io_uring", Claim: "no ring can be made"},
		{ID: "P09", Shares: true, Attack: "other system call tables", Claim: "i386 and x32 are not there"},
		{ID: "P10", Shares: true, Attack: "make namespaces", Claim: "no namespace can be made"},
		{ID: "P11", Shares: true, Attack: "mount calls, setns, chroot", Claim: "none works"},
		{ID: "P12", Shares: true, Attack: "bpf, perf, userfaultfd, fanotify", Claim: "none works"},
		{ID: "P13", Shares: true, Attack: "read and plant keys", Claim: "the host's keyrings are not shared"},
		{ID: "P14", Attack: "type into the caller's terminal", Claim: "input cannot be faked"},
		{ID: "P15", Shares: true, Attack: "use the caller's terminal", Claim: "there is no controlling terminal"},
		{ID: "P16", Shares: true, Attack: "use descriptors that the caller left open", Claim: "no descriptor comes along"},
		{ID: "P17", Shares: true, Attack: "change settings of the kernel", Claim: "the kernel's knobs cannot be turned"},
		{ID: "P18", Shares: true, Attack: "control groups, release_agent, writes in /sys", Claim: "none is writable"},
		{ID: "P19", Attack: "run set-id programs", Claim: "the bits have no effect", prepare: plantSUID},
		{ID: "P20", Shares: true, Attack: "clock, host name, reboot, modules, identity, priority", Claim: "none can be changed", Own: map[string]string{"negative nice": ownKernel}},
		{ID: "P21", Attack: "leave daemons", Claim: "they end with the sandbox"},
		{ID: "P22", Attack: "fork bomb, memory balloon, descriptors, processor", Claim: "limits hold, and the host is healthy",
			Needs: map[string]paddock.Control{"fork": paddock.ControlPIDs, "threads": paddock.ControlPIDs, "memory": paddock.ControlMemory, "shared memory": paddock.ControlMemory, "processor": paddock.ControlCPU, "descriptors": paddock.ControlFiles, "pipes": paddock.ControlFiles},
			after: hostHealthy},
		{ID: "P23", Shares: true, Attack: "read secrets from the environment", Claim: "nothing of the caller's environment enters"},
		{ID: "P24", Shares: true, Attack: "read secrets of the system and of other users", Claim: "none can be read"},
		{ID: "P25", Attack: "run programs that are no files", Claim: "they run, as confined as any"},
		{ID: "P26", Shares: true, Attack: "System V and POSIX IPC of the host", Claim: "IPC of the host is not there"},
		{ID: "P27", Attack: "send escape sequences to the caller's terminal", Claim: "they can be stripped, and what we say ourselves never carries them",
			ByDesign: map[string]string{"plain:": "output is the command's own, byte for byte; --strip-escapes takes sequences out"}, host: escapeSequences},
		{ID: "P28", Attack: "policy files that are broken, missing or misspelt", Claim: "they are refused and nothing starts", host: brokenPolicies},
		{ID: "P29", Attack: "plant helper programs in the working directory and in PATH", Claim: "none is run by us", host: plantedHelpers},
		{ID: "P30", Shares: true, Attack: "side channels: kernel log, energy, addresses, topology, clocks", Claim: "what leaks secrets directly is closed; the rest is documented", Own: map[string]string{"kernel log": ownKernel},
			ByDesign: map[string]string{"channel:": published}},
		{ID: "P31", Attack: "connect to a socket of the host that is shown read-only", Claim: "sockets are reached in the box's own places only", prepare: plantToolchain, host: shownSocket},
		{ID: "P32", Attack: "abstract sockets of the host, with the host's network", Claim: "abstract names of the host can be neither reached nor taken", spec: hostNetwork},
		{ID: "P33", Shares: true, Attack: "reach what carries a kernel of the sandbox's own: its agent, its link, its directory, its control group", Claim: "commands have no way to any of them"},
		{ID: "P34", Attack: "use up what the kernel gives to all: inotify, asynchronous I/O, timers, signals, terminals, message queues", Claim: "a sandbox has a bound of each",
			Own: map[string]string{"": ownKernel}},
		{ID: "P35", Attack: "have others wait for files by leases and locks; watch what they do with files that are shown", Claim: "there are no leases; what may only be read cannot be locked by flock; files of the system cannot be watched",
			Own: map[string]string{"": ownKernel}, ByDesign: map[string]string{"read:": ownLock}},
		{ID: "P36", Attack: "end the sandbox's agent by signals to its threads", Claim: "the sandbox goes on, and what was refused stays told", after: agentStands},
		{ID: "P37", Attack: "use a forwarded key agent for more than its one key: other keys, other requests, other words", Claim: "an agent gets no request but to list and use keys that are named", prepare: startKeyAgents, spec: forwardAgents,
			ByDesign: map[string]string{"forwarded:": forwarded}},

		{ID: "N01", Shares: true, Attack: "reach what is allowed: by name, proxy, CONNECT, SOCKS, TLS, datagrams", Claim: "what a rule allows works in every way, so that refusals mean something", way: &way{}, ByDesign: map[string]string{"": "a rule allows it"}},
		{ID: "N02", Shares: true, Attack: "reach what no rule allows, or one denies, in every way", Claim: "it is refused, in words where there are any", way: &way{}},
		{ID: "N03", Shares: true, Attack: "go around the proxies: to the host's loopback, to its addresses, to any address", Claim: "there is no way but the one, whether a program knows of it or not", way: &way{}},
		{ID: "N04", Shares: true, Attack: "name addresses that no rule lists, in every spelling", Claim: "an address is allowed by what it is, however it is spelt", way: &way{}},
		{ID: "N05", Shares: true, Attack: "reach other ports of what is allowed", Claim: "a rule is about its ports alone", way: &way{}},
		{ID: "N06", Attack: "reach metadata, the host and private networks where every name is allowed", Claim: "`*` holds none of them; only a rule that lists them does", way: &way{policy: everything, reach: public, told: func(string) bool { return true }}},
		{ID: "N07", Shares: true, Attack: "reach what must not be reached by allowed names that lead there", Claim: "the address counts that is dialled", way: &way{}},
		{ID: "N08", Attack: "have a name change between the check and the use, or mean several addresses", Claim: "a name is resolved once and what was checked is dialled", way: &way{}},
		{ID: "N09", Attack: "take data out in names that are asked for", Claim: "nobody is asked for a name before a connection to it is allowed", way: &way{}},
		{ID: "N10", Attack: "ask for names that are none, and for data below a wildcard", Claim: "what is no name is never asked for", way: &way{told: belowWildcard},
			ByDesign: map[string]string{"told:": "a wildcard allows every name below it, and so the labels that are chosen; list names where that matters"}},
		{ID: "N11", Shares: true, Attack: "name one host in the request line, and another in the header", Claim: "one host is judged, dialled and named", way: &way{}},
		{ID: "N12", Shares: true, Attack: "name another host in TLS, or inside of it", Claim: "TLS is for the host that was judged; what is looked into has to be so too", way: &way{told: fronted},
			ByDesign: map[string]string{"told:": "what is not looked into is not read; a rule with inspect, or about requests, is"}},
		{ID: "N13", Shares: true, Attack: "give SOCKS names with NUL, percent, spaces and line ends", Claim: "what is no name is refused", way: &way{}},
		{ID: "N14", Shares: true, Attack: "give CONNECT targets with users, paths, fragments and NUL; chain proxies; reach the gateway by itself", Claim: "a target is a host and a port, or is refused", way: &way{}},
		{ID: "N15", Shares: true, Attack: "addresses in SOCKS, BIND, UDP ASSOCIATE, older versions", Claim: "CONNECT is all there is, and addresses are judged as ever", way: &way{}},
		{ID: "N16", Shares: true, Attack: "confuse names: suffixes, apex, dots, case, other scripts", Claim: "a name has one form, which is matched and dialled", way: &way{}},
		{ID: "N17", Shares: true, Attack: "send a second request on a connection whose first one is allowed", Claim: "each request is judged", way: &way{}},
		{ID: "N18", Shares: true, Attack: "hide a request in another one: lengths, chunks, folded headers", Claim: "what two readers would end at different bytes is refused", way: &way{}},
		{ID: "N19", Shares: true, Attack: "upgrade to WebSocket elsewhere, or pretend to", Claim: "an upgrade is a request as any, and only an agreed one ends the reading", way: &way{}},
		{ID: "N20", Shares: true, Attack: "HTTP/2 without asking, other hosts on one connection, CONNECT-UDP, QUIC", Claim: "each stream is judged; what cannot be read is refused", way: &way{}},
		{ID: "N21", Shares: true, Attack: "TLS hellos without a name, in pieces, hidden, broken", Claim: "a hello is read whole, or refused", way: &way{},
			ByDesign: map[string]string{"told:": "the connection goes to the host that is allowed, whatever else its hello holds; what is looked into cannot hide"}},
		{ID: "N22", Shares: true, Attack: "speak other protocols where HTTP is expected", Claim: "where requests are judged nothing else passes", way: &way{},
			ByDesign: map[string]string{"told:": "a rule that says nothing of requests allows any bytes to its host and ports"}},
		{ID: "N23", Attack: "reach the gateway from outside of the sandbox", Claim: "it listens nowhere on the host", way: &way{}, prepare: countServices, after: noService},
		{ID: "N24", Attack: "use another sandbox's way out: its names, addresses, secret", Claim: "a sandbox has its own rules alone", way: &way{}, host: beside},
		{ID: "N25", Attack: "keep what was open when the rules changed", Claim: "what is no longer allowed is cut, and what never was stays denied", way: &way{}, host: changeRules},
		{ID: "N26", Attack: "kill the gateway; wear it out with slow and many connections", Claim: "without it nothing gets out; with it what is allowed goes on", way: &way{}, host: killGateway},
		{ID: "N27", Shares: true, Attack: "ask the proxy for ftp, file and other schemes", Claim: "http is all there is", way: &way{}},
		{ID: "N28", Attack: "take data out through what is allowed: methods, paths, amounts", Claim: "methods, paths and amounts hold; the rest of what is allowed is recorded", way: &way{},
			ByDesign: map[string]string{"told:": "an allowed request carries what its program says; each one is recorded"}},
		{ID: "N29", Attack: "send a secret's placeholder elsewhere: other hosts, Host, path, body, names", Claim: "it becomes the secret in inspected TLS to its hosts, at its places, and nowhere else", way: &way{}},
		{ID: "N30", Attack: "have the secret's host say it back, in every code", Claim: "the answer holds the placeholder, where the secret is plain or in a code that programs use", way: &way{},
			ByDesign: map[string]string{"told:": "the secret's own host knows the secret, and can say it in codes that nobody looks for"}},
		{ID: "N31", Attack: "make packets, interfaces, addresses and routes by hand", Claim: "the sandbox's network cannot be changed from inside", way: &way{}},
		{ID: "N32", Attack: "send datagrams, echoes, fragments and other transports to anything", Claim: "datagrams go where a rule says so, and nothing else goes at all", way: &way{}},
		{ID: "N33", Attack: "guess the addresses that stand for names", Claim: "an address that stands for no name leads nowhere", way: &way{}},
		{ID: "N34", Attack: "find, trace, read or end the process that carries the way out", Claim: "it is not there for commands, and keeps the secret in its memory alone", way: &way{}, host: hostileToGateway},
	}
}
