#include "textflag.h"

// func vfork(args *cloneArgs, size uintptr) (pid uintptr, errno syscall.Errno)
//
// The child has the parent's stack and overwrites the return address here with its
// first call. A register is each one's own.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ args+0(FP), DI
	MOVQ size+8(FP), SI
	MOVQ $435, AX         // clone3
	MOVQ 0(SP), R12
	SYSCALL
	MOVQ R12, 0(SP)
	MOVQ $0, errno+24(FP)
	CMPQ AX, $-4095
	JCS  done
	NEGQ AX
	MOVQ AX, errno+24(FP)
	MOVQ $0, AX

done:
	MOVQ AX, pid+16(FP)
	RET
