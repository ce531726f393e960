package kernel

// ExitZero gives a program that exits with status 0. It needs nothing of the
// box's file tree, which may hold no program at all.
func ExitZero() []byte {
	return elf(62, []byte{
		0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	})
}

// Pause gives a program that waits for a signal, for good.
func Pause() []byte {
	return elf(62, []byte{
		0xb8, 34, 0, 0, 0, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the beginning
	})
}

// DetachProc gives a program that reads a byte from descriptor 3, detaches
// what is mounted on /proc, and exits with a status other than zero if it could
// not. Whatever waits for it waits for no start of anything larger.
func DetachProc() []byte {
	return elf(62, []byte{
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
