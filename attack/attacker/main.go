//go:build linux

// Command attacker tries to escape from the sandbox that it runs in. It is the guest program of
// package attack, with one subcommand for each case. A case tries several techniques and prints one
// line of JSON with its observations.
//
//	attacker list          the techniques of every case
//	attacker A08           try all techniques of a case
//	attacker A08 symlink   try one
//	attacker canary        be the canary process, on the host
//	attacker internet …    be all that lies beyond the host
//	attacker terminal …    give a program a terminal, on the host
//
// It does no harm where it succeeds: it writes only values that are already there and makes only names
// that carry the marker. It gives the kernel arguments that are refused after the permission check.
// Run it only from package attack.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/attack/internet"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A probe is one technique.
type probe struct {
	name string
	run  func(b *protocol.Brief) protocol.Try
}

// cases returns the techniques of every case.
func cases() map[string][]probe {
	return map[string][]probe{
		"A01": writeOutside(),
		"A02": writeHome(),
		"A03": writeThroughLink(),
		"A04": plantLinks(),
		"A05": readDenied(),
		"A06": writeDenied(),
		"A07": renameAncestor(),
		"A08": readDeniedEveryWay(),
		"A09": moveDenied(),
		"A10": readLate(),
		"A11": writeHardlink(),
		"A12": sharedMemoryDir(),
		"A13": temporaryDir(),
		"A14": setID(),
		"A15": makeDevice(),
		"A16": plantSpecial(),
		"A17": fillDisk(),
		"A18": fileHandle(),
		"A19": mountOver(),
		"A20": userMount(),
		"A21": foldedName(),
		"A22": readDenied(),
		"A23": outlive(),
		"A24": nextSandbox(),
		"A25": linkedSource(),
		"A26": setIDContent(),
		"A27": workTop(),
		"C01": trustExisting(),
		"C02": trustConfig(),
		"C03": trustNested(),
		"C04": trustNewRepo(),
		"C05": trustGitRest(),
		"C06": trustMissing(),
		"C07": trustAgents(),
		"C08": trustScripts(),
		"C09": trustBinaries(),
		"C10": moveMount(),
		"C11": gitDirectory(),
		"P01": hostProcess(),
		"P02": helperProcess(),
		"P03": hostSocket(),
		"P04": abstractSocket(),
		"P05": datagramSocket(),
		"P06": vsock(),
		"P07": socketFamilies(),
		"P08": uring(),
		"P09": foreignCalls(),
		"P10": newNamespaces(),
		"P11": mountCalls(),
		"P12": kernelPrograms(),
		"P13": keyrings(),
		"P14": terminalInput(),
		"P15": controllingTerminal(),
		"P16": inheritedFDs(),
		"P17": kernelKnobs(),
		"P18": cgroupEscape(),
		"P19": setIDProgram(),
		"P20": systemCalls(),
		"P21": outlive(),
		"P22": exhaust(),
		"P23": environment(),
		"P24": hostSecrets(),
		"P25": fileless(),
		"P26": hostIPC(),
		"P27": terminalOutput(),
		"P28": {},
		"P29": {},
		"P30": sideChannels(),
		"P31": shownSocket(),
		"P32": sharedNetwork(),
		"P33": ownCarrier(),
		"P34": spend(),
		"P35": stall(),
		"P36": signalAgent(),
		"P37": keyAgent(),
		"N01": allowedWays(),
		"N02": stranger(),
		"N03": aroundProxy(),
		"N04": literals(),
		"N05": otherPorts(),
		"N06": metadata(),
		"N07": turnedNames(),
		"N08": rebinding(),
		"N09": nameLeak(),
		"N10": strangeNames(),
		"N11": crossed(),
		"N12": fronting(),
		"N13": socksNames(),
		"N14": strangeTargets(),
		"N15": socksRest(),
		"N16": confusedNames(),
		"N17": secondRequest(),
		"N18": smuggling(),
		"N19": upgrades(),
		"N20": otherHTTP(),
		"N21": hellos(),
		"N22": otherBytes(),
		"N23": someone(),
		"N24": another(),
		"N25": changedRules(),
		"N26": overload(),
		"N27": otherSchemes(),
		"N28": leakAllowed(),
		"N29": misplaced(),
		"N30": echoes(),
		"N31": rawPackets(),
		"N32": otherPackets(),
		"N33": standIns(),
		"N34": carrierProcess(),
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("want a case")
	}
	if os.Geteuid() != os.Getuid() && args[0] != "whoami" {
		return errors.New("a set-id copy only tells who it is")
	}
	switch args[0] {
	case "list":
		return list()
	case "canary":
		return canary(args[1:])
	case "handle":
		return printHandle(args[1:])
	case "terminal":
		return relay(args[1:])
	case "internet":
		return internet.Serve(args[1], slices.Contains(args, "-careless"))
	case "execveat":
		return fromMemory(args[1:])
	case "idle":
		return idle()
	case "whoami":
		return whoami(args[1:])
	}
	b := new(protocol.Brief)
	if err := json.Unmarshal([]byte(os.Getenv(protocol.BriefEnv)), b); err != nil {
		return fmt.Errorf("read brief: %w", err)
	}
	probes, ok := cases()[args[0]]
	if !ok {
		return fmt.Errorf("no case %q", args[0])
	}
	if len(args) > 1 {
		return runOne(b, probes, args[1])
	}
	if b.Alive != "" && b.Phase != killed {
		alive(b)
	}
	tries := make([]protocol.Try, len(probes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, together(args[0]))
	for i, p := range probes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			tries[i] = isolated(args[0], p.name)
		})
	}
	wg.Wait()
	return json.NewEncoder(os.Stdout).Encode(protocol.Sum(args[0], tries))
}

// together returns how many techniques of a case run in parallel. Those on the network
// mostly wait. In three rows a technique depends on another one.
func together(id string) int {
	if id[0] == 'N' && !slices.Contains([]string{"N08", "N25", "N26"}, id) {
		return 6
	}
	return 1
}

func list() error {
	out := map[string][]string{}
	for id, probes := range cases() {
		names := []string{}
		for _, p := range probes {
			names = append(names, p.name)
		}
		out[id] = names
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func runOne(b *protocol.Brief, probes []probe, name string) error {
	i := slices.IndexFunc(probes, func(p probe) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("no technique %q", name)
	}
	t := probes[i].run(b)
	t.Name = name
	return json.NewEncoder(os.Stdout).Encode(t)
}

// isolated runs one technique in a process of its own, because a filter may kill it, or it
// may damage its own state.
func isolated(id, name string) protocol.Try {
	cmd := exec.Command("/proc/self/exe", id, name)
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		cmd = exec.Command(os.Args[0], id, name)
	}
	var out, errs bytes.Buffer
	cmd.Stdin = os.Stdin
	cmd.Stdout = &out
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second // a technique may leave children that hold the pipe
	if err := cmd.Start(); err != nil {
		return protocol.Try{Name: name, Outcome: "broken", Detail: "start the technique: " + err.Error()}
	}
	stop := time.AfterFunc(40*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	fired := !stop.Stop()
	var t protocol.Try
	if line, _, _ := strings.Cut(out.String(), "\n"); json.Unmarshal([]byte(line), &t) == nil && t.Outcome != "" {
		return t
	}
	if fired {
		return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "stuck", Detail: "did not get through in time"}
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		switch ws.Signal() {
		case syscall.SIGSYS, syscall.SIGKILL:
			return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: signalName(ws.Signal()), Detail: "the technique was killed"}
		}
	}
	tail := errs.String()
	if len(tail) > 2000 {
		tail = tail[:2000]
	}
	// Go exits with 2 and a trace on SIGSYS.
	if strings.Contains(tail, "SIGSYS") {
		return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "SIGSYS", Detail: "the technique was killed"}
	}
	return protocol.Try{Name: name, Outcome: "broken", Detail: fmt.Sprintf("no result: %v: %s", err, tail)}
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGSYS:
		return "SIGSYS"
	case syscall.SIGKILL:
		return "SIGKILL"
	}
	return s.String()
}
