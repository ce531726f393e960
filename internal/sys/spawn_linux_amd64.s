#include "textflag.h"

// func vfork(call, one, two, three uintptr, c *child) (pid uintptr, errno syscall.Errno)
TEXT ·vfork(SB), NOSPLIT, $16-56
	MOVQ call+0(FP), AX
	MOVQ one+8(FP), DI
	MOVQ two+16(FP), SI
	MOVQ three+24(FP), DX
	MOVQ c+32(FP), R12
	MOVQ $0, R10
	MOVQ $0, R8
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ $0, errno+48(FP)
	CMPQ AX, $-4095
	JCS  done
	NEGQ AX
	MOVQ AX, errno+48(FP)
	MOVQ $0, AX

done:
	MOVQ AX, pid+40(FP)
	RET

child:
	// On its own stack, of which nothing is used.
	ANDQ $~15, SP
	SUBQ $32, SP
	MOVQ R12, 0(SP)
	CALL ·begin(SB)
	INT  $3

// func tryFork() (pid uintptr, errno syscall.Errno)
TEXT ·tryFork(SB), NOSPLIT, $0-16
	MOVQ $0x4100, DI      // CLONE_VFORK and CLONE_VM, and no signal
	MOVQ $0, SI           // it uses no stack
	MOVQ $0, DX
	MOVQ $0, R10
	MOVQ $0, R8
	MOVQ $56, AX          // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ $0, errno+8(FP)
	CMPQ AX, $-4095
	JCS  done
	NEGQ AX
	MOVQ AX, errno+8(FP)
	MOVQ $0, AX

done:
	MOVQ AX, pid+0(FP)
	RET

child:
	MOVQ $0, DI
	MOVQ $60, AX          // exit
	SYSCALL
	INT  $3
