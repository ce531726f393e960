// Package protocol defines the messages between the attack harness on the host and the attacker inside a
// sandbox: where the canaries are, and the outcome of each attempt. It also has the addresses and names of
// the simulated network, which both use.
//
// The brief tells the attacker everything but the secrets, because a boundary must hold against an
// attacker who knows the way. Secrets are random tokens, so a token in the attacker's output proves a
// leak.
package protocol

// BriefEnv is the environment variable that holds the brief, as JSON.
const BriefEnv = "PADDOCK_ATTACK_BRIEF"

// Kept is an extended attribute that the host sets on files of the workspace.
const Kept = "user.kept"

// RefusedFirst is a name in the workspace that P36 tries to make before it signals the agent.
const RefusedFirst = ".git/hooks/p36-first"

// Outcomes of one try, as the attacker sees it.
const (
	// Denied means that it was refused.
	Denied = "denied"
	// Reached means that it did something forbidden.
	Reached = "reached"
	// Inside means that it worked, which is harmless if it stayed inside; the host checks.
	Inside = "inside"
	// Absent means that it could not be tried, because the kernel or machine lacks
	// something.
	Absent = "not-applicable"
)

// A Brief has the targets of the attacker.
type Brief struct {
	Marker string `json:"marker"` // prefix of every file planted outside the workspace
	Place  string `json:"place"`  // host directory with all of this
	Home   string `json:"home"`   // the caller's home on the host
	Work   string `json:"work"`   // the workspace, writable
	Other  string `json:"other"`  // file in another user's home
	State  string `json:"state"`  // the driver's own directory on the host
	Self   string `json:"self"`   // the attacker, on the host and inside

	Secret string `json:"secret"` // a private key in Home
	Handle []byte `json:"handle"` // file handle of Secret
	HType  int    `json:"htype"`

	DenyReadDir  string `json:"deny_read_dir"`  // directory in Work, with secret.txt
	DenyReadFile string `json:"deny_read_file"` // file in Work
	DenyReadLate string `json:"deny_read_late"` // file in Work that the host makes later
	DenyWriteDir string `json:"deny_write_dir"` // directory in Work, with file.txt
	DenyWrite    string `json:"deny_write"`     // file in Work
	DenyDeep     string `json:"deny_deep"`      // denied for writing, two directories down

	Hard string `json:"hard"` // hard link in Work to a file of Home
	SUID string `json:"suid"` // set-user-id root copy of the attacker in Work, if any
	FIFO string `json:"fifo"` // FIFO of the host, to talk back during a case

	Target   string   `json:"target"`   // target of this row, as seen inside
	Own      []string `json:"own"`      // files of the driver's cache and state, and its program, as seen inside
	Prepared string   `json:"prepared"` // set-id file in Work made by the host, if any

	Canary Canary `json:"canary"`
	Agents Agents `json:"agents"`

	FDs []int `json:"fds"` // descriptors that the harness leaves open on purpose

	Memory int64   `json:"memory"` // limits of the sandbox, to be exceeded
	PIDs   int     `json:"pids"`
	Files  int     `json:"files"`
	Disk   int64   `json:"disk"`
	CPUs   float64 `json:"cpus"`

	Unconfined bool `json:"unconfined"` // the control run without a sandbox

	// For network rows: the name to try first, the gateway's PID, and the phase of the row.
	Alive   string `json:"alive"`
	Gateway int    `json:"gateway"`
	Phase   string `json:"phase"`

	// Slow means that the sandbox's own kernel may be emulated.
	Slow bool `json:"slow"`

	// Kernel means that the attacker runs on the sandbox's own kernel, which may show
	// changes that did not happen. Then the host watches the files.
	Kernel bool `json:"kernel"`
}

// A Canary is a process on the host that holds objects which a sandbox must not touch.
type Canary struct {
	PID      int    `json:"pid"`
	Stream   string `json:"stream"`   // path of a listening unix socket
	Datagram string `json:"datagram"` // path of a Unix datagram socket
	InWork   string `json:"in_work"`  // listening Unix socket inside the workspace, if any
	Abstract string `json:"abstract"` // name of a listening abstract socket, without the NUL
	ShmID    int    `json:"shm_id"`
	ShmKey   int    `json:"shm_key"`
	MsgID    int    `json:"msg_id"`
	SemID    int    `json:"sem_id"`
	MQueue   string `json:"mqueue"`
	Key      int    `json:"key"` // serial of a key in the user keyring
	KeyName  string `json:"key_name"`
	Handle   []byte `json:"handle"`
	HType    int    `json:"htype"`
}

// AgentConnections is how many connections of a sandbox to a key agent are served at a time.
const AgentConnections = 16

// Agents are the caller's agents of ssh and gpg in P37. Each has a key that is forwarded, and another one.
type Agents struct {
	SSH       string `json:"ssh"` // path of the socket on the host
	GPG       string `json:"gpg"`
	Key       []byte `json:"key"` // public keys of the ssh-agent
	Other     []byte `json:"other"`
	Grip      string `json:"grip"` // keygrips of the gpg-agent
	OtherGrip string `json:"other_grip"`
}

// A Try is one technique of a case.
type Try struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Errno   string `json:"errno,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Loot    string `json:"loot,omitempty"` // what was read; the host searches it for tokens
}

// A Report is the line that the attacker prints.
type Report struct {
	Case    string `json:"case"`
	Verdict string `json:"verdict"` // denied, contained, escaped or not-applicable
	Errno   string `json:"errno,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Tries   []Try  `json:"tries"`
}

// Sum returns the verdict of a list of tries: the worst that the attacker saw.
func Sum(id string, tries []Try) Report {
	r := Report{Case: id, Verdict: "not-applicable", Tries: tries}
	rank := map[string]int{Absent: 0, Denied: 1, Inside: 2, Reached: 3}
	worst := 0
	seen := map[string]bool{}
	for _, t := range tries {
		if k := rank[t.Outcome]; k > worst {
			worst = k
			r.Detail = t.Name + ": " + t.Detail
		}
		if t.Errno != "" && !seen[t.Errno] {
			seen[t.Errno] = true
			if r.Errno != "" {
				r.Errno += " "
			}
			r.Errno += t.Errno
		}
	}
	r.Verdict = [...]string{"not-applicable", "denied", "contained", "escaped"}[worst]
	return r
}
