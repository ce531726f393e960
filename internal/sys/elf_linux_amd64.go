package sys

import "encoding/binary"

// elfMachine is what elf(5) calls this machine.
const elfMachine = 62

// ExitZero returns a program that exits with status 0. It needs no other file, so it runs in a box
// whose file tree has no programs.
func ExitZero() []byte {
	return elf([]byte{
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	})
}

// Pause returns a program that waits until a signal ends it.
func Pause() []byte {
	return elf([]byte{
		0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the beginning
	})
}

// DetachProc returns a program that reads a byte from descriptor 3, detaches the mount on /proc,
// and exits. Its status is not zero if it failed. It starts faster than a program with a runtime.
func DetachProc() []byte {
	return elf([]byte{
		0x31, 0xc0, // xor eax, eax (read)
		0xbf, 3, 0, 0, 0, // mov edi, 3
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 1, 0, 0, 0, // mov edx, 1
		0x0f, 0x05, // syscall
		0x83, 0xf8, 0x01, // cmp eax, 1
		0x75, 0x1e, // jne to the exit, with status 3
		0x48, 0xb8, '/', 'p', 'r', 'o', 'c', 0, 0, 0, // mov rax, "/proc"
		0x50,             // push rax
		0x48, 0x89, 0xe7, // mov rdi, rsp
		0xbe, 2, 0, 0, 0, // mov esi, MNT_DETACH
		0xb8, 166, 0, 0, 0, // mov eax, 166 (umount2)
		0x0f, 0x05, // syscall
		0x89, 0xc7, // mov edi, eax
		0xf7, 0xdf, // neg edi
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x0f, 0x05, // syscall
	})
}

// Bounded returns a program that removes all capabilities but those of keep from its bounding set,
// and CAP_SETPCAP from its ambient set. Then it executes the program at path with its own arguments
// and environment. If byte 6 of its argument 0 is mark, marked replaces keep.
//
// It does this for its one thread. A program with a runtime would have to stop all its threads for
// each capability.
func Bounded(path string, keep uint64, mark byte, marked uint64) []byte {
	le := binary.LittleEndian
	var b []byte
	b = append(b,
		0x49, 0x89, 0xe4, // mov r12, rsp (how many arguments, these, 0, environment)
		0x49, 0x8b, 0x44, 0x24, 0x08, // mov rax, [r12+8] (the name)
		0x48, 0xbb) // mov rbx, keep
	b = le.AppendUint64(b, keep)
	b = append(b,
		0x80, 0x78, 0x06, mark, // cmp byte [rax+6], mark
		0x75, 0x0a, // jne past the next
		0x48, 0xbb) // mov rbx, marked
	b = le.AppendUint64(b, marked)
	b = append(b,
		0x31, 0xed, // xor ebp, ebp
		0x48, 0x0f, 0xa3, 0xeb, // bt rbx, rbp
		0x72, 0x16, // jc past the call
		0xbf, 24, 0, 0, 0, // mov edi, PR_CAPBSET_DROP
		0x89, 0xee, // mov esi, ebp
		0x31, 0xd2, // xor edx, edx
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0x45, 0x31, 0xc0, // xor r8d, r8d
		0xb8, 157, 0, 0, 0, // mov eax, 157 (prctl; past the last capability it fails)
		0x0f, 0x05, // syscall
		0xff, 0xc5, // inc ebp
		0x83, 0xfd, 64, // cmp ebp, 64
		0x7c, 0xdd, // jl to bt
		0xbf, 47, 0, 0, 0, // mov edi, PR_CAP_AMBIENT
		0xbe, 3, 0, 0, 0, // mov esi, PR_CAP_AMBIENT_LOWER
		0xba, 8, 0, 0, 0, // mov edx, CAP_SETPCAP
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0x45, 0x31, 0xc0, // xor r8d, r8d
		0xb8, 157, 0, 0, 0, // mov eax, 157 (prctl)
		0x0f, 0x05, // syscall
		0x48, 0x8d, 0x3d, 33, 0, 0, 0, // lea rdi, [rip+33] (the path, after the code)
		0x49, 0x8b, 0x0c, 0x24, // mov rcx, [r12]
		0x49, 0x8d, 0x74, 0x24, 0x08, // lea rsi, [r12+8]
		0x49, 0x8d, 0x54, 0xcc, 0x10, // lea rdx, [r12+rcx*8+16]
		0xb8, 59, 0, 0, 0, // mov eax, 59 (execve)
		0x0f, 0x05, // syscall
		0xbf, 127, 0, 0, 0, // mov edi, 127
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x0f, 0x05) // syscall
	return elf(append(append(b, path...), 0))
}
