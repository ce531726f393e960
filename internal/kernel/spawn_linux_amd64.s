#include "textflag.h"

// func vfork(args *cloneArgs, size uintptr, c *child) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB), NOSPLIT, $16-40
	MOVQ args+0(FP), DI
	MOVQ size+8(FP), SI
	MOVQ c+16(FP), R12
	MOVQ $435, AX         // clone3
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ $0, errno+32(FP)
	CMPQ AX, $-4095
	JCS  done
	NEGQ AX
	MOVQ AX, errno+32(FP)
	MOVQ $0, AX

done:
	MOVQ AX, pid+24(FP)
	RET

child:
	// On its own stack, of which nothing is used.
	ANDQ $~15, SP
	SUBQ $32, SP
	MOVQ R12, 0(SP)
	CALL ·begin(SB)
	INT  $3
