//go:build linux

#include "textflag.h"

// func int80(nr, a, b, c, d, e uintptr) int32
// The i386 entry of the kernel, from a 64-bit program: a filter that looks only
// at x86-64 numbers misreads it. Pointers must lie below 4 GiB.
TEXT ·int80(SB), NOSPLIT, $0-52
	MOVQ nr+0(FP), AX
	MOVQ a+8(FP), BX
	MOVQ b+16(FP), CX
	MOVQ c+24(FP), DX
	MOVQ d+32(FP), SI
	MOVQ e+40(FP), DI
	INT  $0x80
	MOVL AX, ret+48(FP)
	RET
