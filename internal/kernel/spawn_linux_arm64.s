#include "textflag.h"

// func vfork(args *cloneArgs, size uintptr, c *child) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB), NOSPLIT, $16-40
	MOVD args+0(FP), R0
	MOVD size+8(FP), R1
	MOVD c+16(FP), R19
	MOVD $435, R8         // clone3
	SVC
	CBZ  R0, child
	MOVD ZR, errno+32(FP)
	CMN  $4095, R0
	BCC  done
	NEG  R0, R0
	MOVD R0, errno+32(FP)
	MOVD ZR, R0

done:
	MOVD R0, pid+24(FP)
	RET

child:
	// On its own stack, of which nothing is used.
	SUB  $48, RSP
	MOVD R19, 8(RSP)
	BL   ·begin(SB)
	BRK
