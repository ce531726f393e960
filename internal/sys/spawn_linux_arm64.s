#include "textflag.h"

// func vfork(call, one, two, three uintptr, c *child) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB), NOSPLIT, $16-56
	MOVD call+0(FP), R8
	MOVD one+8(FP), R0
	MOVD two+16(FP), R1
	MOVD three+24(FP), R2
	MOVD c+32(FP), R19
	MOVD ZR, R3
	MOVD ZR, R4
	SVC
	CBZ  R0, child
	MOVD ZR, errno+48(FP)
	CMN  $4095, R0
	BCC  done
	NEG  R0, R0
	MOVD R0, errno+48(FP)
	MOVD ZR, R0

done:
	MOVD R0, pid+40(FP)
	RET

child:
	// On its own stack, of which nothing is used.
	SUB  $48, RSP
	MOVD R19, 8(RSP)
	BL   ·begin(SB)
	BRK

// func tryFork() (pid uintptr, errno syscall.Errno)
TEXT ·tryFork(SB), NOSPLIT, $0-16
	MOVD $0x4100, R0      // CLONE_VFORK and CLONE_VM, and no signal
	MOVD ZR, R1           // it uses no stack
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8         // clone
	SVC
	CBZ  R0, child
	MOVD ZR, errno+8(FP)
	CMN  $4095, R0
	BCC  done
	NEG  R0, R0
	MOVD R0, errno+8(FP)
	MOVD ZR, R0

done:
	MOVD R0, pid+0(FP)
	RET

child:
	MOVD ZR, R0
	MOVD $93, R8          // exit
	SVC
	BRK
