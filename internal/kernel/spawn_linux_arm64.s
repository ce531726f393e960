#include "textflag.h"

// func vfork(args *cloneArgs, size uintptr) (pid uintptr, errno syscall.Errno)
//
// The return address is in a register here, which is each one's own.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-32
	MOVD args+0(FP), R0
	MOVD size+8(FP), R1
	MOVD $435, R8         // clone3
	SVC
	MOVD ZR, errno+24(FP)
	CMN  $4095, R0
	BCC  done
	NEG  R0, R0
	MOVD R0, errno+24(FP)
	MOVD ZR, R0

done:
	MOVD R0, pid+16(FP)
	RET
