package seccomp

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Base returns the filter for the agent in a jail and every process that it starts.
func Base() ([]sys.Instruction, error) { return assemble(baseRules(), sys.Numbers()) }

// GuestKernel returns the filter for a guest kernel and the program that starts it.
func GuestKernel() ([]sys.Instruction, error) {
	return assemble(slices.Concat(supervisorRules(), kernelRules()), sys.Numbers())
}

// Reported returns the filter that reports system calls to the broker, on top of Base. With trees the
// broker decides about changes of files too.
func Reported(trees bool) ([]sys.Instruction, error) {
	return assemble(slices.Concat(jailRules(), guestRules(trees)), sys.Numbers())
}

// Enlisted returns the filter that reports system calls of a guest kernel's process to the broker, on
// top of GuestKernel.
func Enlisted(trees bool) ([]sys.Instruction, error) {
	return assemble(slices.Concat(engineRules(), guestRules(trees)), sys.Numbers())
}

// Sealed returns the filter of Enlisted for a process that has its namespaces and mounts, and makes no
// more of them.
func Sealed(trees bool) ([]sys.Instruction, error) {
	return assemble(slices.Concat(wallRules(), engineRules(), guestRules(trees)), sys.Numbers())
}

// Inside returns the filter for commands on a guest kernel.
func Inside() ([]sys.Instruction, error) { return assemble(insideRules(), sys.Numbers()) }

// InsideRoot returns the filter of Inside for a box whose root has capabilities over the guest kernel. Root may make
// set-id programs there. No host's file gets such a mode: the guest kernel's own filter refuses it.
func InsideRoot() ([]sys.Instruction, error) {
	var rules []rule
	own := setIDRules()
	for _, r := range insideRules() {
		if !slices.ContainsFunc(own, func(o rule) bool { return slices.Equal(o.calls, r.calls) }) {
			rules = append(rules, r)
		}
	}
	return assemble(rules, sys.Numbers())
}

// InsideParts returns the filter of Inside in two parts. held is for the thread that starts commands,
// from which they inherit it. each is for every command itself, and refuses the calls that only the
// starting thread needs. Installing a filter makes the kernel evaluate it for every system call
// number, so each is the short part.
func InsideParts() (held, each []sys.Instruction, err error) {
	first, second := insideParts()
	if held, err = assemble(first, sys.Numbers()); err != nil {
		return nil, nil, err
	}
	each, err = assemble(second, sys.Numbers())
	return held, each, err
}

// insideParts divides insideRules.
func insideParts() (held, each []rule) {
	for _, r := range insideRules() {
		if slices.Contains(r.calls, "clone3") {
			each = append(each, r)
		} else {
			held = append(held, r)
		}
	}
	return held, each
}

// Opcodes of classic BPF, as linux/bpf_common.h has them.
const (
	opLoad   = 0x20 // BPF_LD | BPF_W | BPF_ABS
	opAnd    = 0x54 // BPF_ALU | BPF_AND | BPF_K
	opIfEq   = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	opIfGe   = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	opJump   = 0x05 // BPF_JMP | BPF_JA
	opReturn = 0x06 // BPF_RET | BPF_K

	offNumber = 0
	offArch   = 4
	offArgs   = 16 // low half first: every architecture of Numbers is little-endian
)

// assemble makes the filter. Calls of a foreign architecture kill: nothing
// that the table says would be true for their numbers.
func assemble(rules []rule, numbers map[string]uint32) ([]sys.Instruction, error) {
	var p program
	p.emit(opLoad, offArch)
	p.emitIf(opIfEq, sys.Arch, 1, 0)
	p.emit(opReturn, actKill)
	p.emit(opLoad, offNumber)
	if sys.X32 != 0 {
		p.emitIf(opIfGe, sys.X32, 0, 1)
		p.emit(opReturn, errno(syscall.ENOSYS))
	}
	var known []uint32
	for _, r := range rules {
		known = append(known, r.numbers(numbers)...)
	}
	if len(known) > 0 { // what is past them all, gVisor asks about most
		p.emitIf(opIfGe, slices.Max(known)+1, 0, 1)
		p.emit(opReturn, actAllow)
	}
	for _, r := range rules {
		if err := p.rule(r.numbers(numbers), r); err != nil {
			return nil, fmt.Errorf("system-call filter: rule %q: %w", r.why, err)
		}
	}
	p.emit(opReturn, actAllow)
	if len(known) == 0 || len(p) > 4096 {
		return nil, fmt.Errorf("system-call filter of %d instructions for %d calls makes no sense", len(p), len(known))
	}
	return p, nil
}

// numbers gives those of a rule's calls that this architecture has.
func (r rule) numbers(all map[string]uint32) []uint32 {
	var nrs []uint32
	for _, c := range r.calls {
		if nr, ok := all[c]; ok {
			nrs = append(nrs, nr)
		}
	}
	return nrs
}

type program []sys.Instruction

func (p *program) emit(op uint16, k uint32) {
	*p = append(*p, sys.Instruction{Code: op, K: k})
}

func (p *program) emitIf(op uint16, k uint32, yes, no uint8) {
	*p = append(*p, sys.Instruction{Code: op, K: k, Jt: yes, Jf: no})
}

// rule appends a block: is it one of nrs, do all conditions hold, then return.
// The block begins and ends with the call's number loaded.
func (p *program) rule(nrs []uint32, r rule) error {
	if len(nrs) == 0 {
		return nil
	}
	var body program
	for _, c := range r.when {
		if len(c.value) == 0 {
			return fmt.Errorf("a condition without a value always holds")
		}
		if len(c.value) > maxJump {
			return fmt.Errorf("%d values are too many", len(c.value))
		}
		body.emit(opLoad, uint32(offArgs+8*c.arg))
		if c.mask != 0 {
			body.emit(opAnd, c.mask)
		}
		// On the way out of the block (a condition that fails) jump to its
		// last instruction; the distance is patched when the body is whole.
		for i, v := range c.value {
			rest := uint8(len(c.value) - 1 - i)
			if c.not {
				body.emitIf(opIfEq, v, fail, 0)
				continue
			}
			no := uint8(0)
			if rest == 0 {
				no = fail
			}
			body.emitIf(opIfEq, v, rest, no)
		}
	}
	body.emit(opReturn, r.action)
	if len(r.when) > 0 {
		body.emit(opLoad, offNumber)
	}
	if len(body) > maxJump || len(nrs) > maxJump {
		return fmt.Errorf("%d calls and %d instructions are too many for one block", len(nrs), len(body))
	}
	for i := range body {
		to := uint8(len(body) - 2 - i) // the reload
		if body[i].Code == opIfEq && body[i].Jt == fail {
			body[i].Jt = to
		}
		if body[i].Code == opIfEq && body[i].Jf == fail {
			body[i].Jf = to
		}
	}
	for i, nr := range nrs {
		rest := uint8(len(nrs) - 1 - i)
		no := uint8(0)
		if rest == 0 {
			no = uint8(len(body))
		}
		p.emitIf(opIfEq, nr, rest, no)
	}
	*p = append(*p, body...)
	return nil
}

const (
	// fail marks a jump out of the block until its distance is known.
	fail = 0xff
	// maxJump bounds every distance in a block, so that none is taken for fail
	// or cut to its low eight bits, which would be a hole in the filter.
	maxJump = fail - 1
)
