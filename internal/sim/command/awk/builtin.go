package awk

// A builtin is a function of the language.
type builtin uint8

const (
	fLength builtin = iota + 1
	fSubstr
	fIndex
	fSplit
	fSub
	fGsub
	fGensub
	fMatch
	fSprintf
	fTolower
	fToupper
	fSystem
	fClose
	fFflush
	fInt
	fSqrt
	fExp
	fLog
	fSin
	fCos
	fAtan2
	fRand
	fSrand
	fSystime
	fStrftime
	fMktime
	fStrtonum
	fAnd
	fOr
	fXor
	fCompl
	fLshift
	fRshift
	fAsort
	fAsorti
	fPatsplit
	fIsarray
	fTypeof
	fMkbool
)

func builtinOf(name string) builtin {
	switch name {
	case "length":
		return fLength
	case "substr":
		return fSubstr
	case "index":
		return fIndex
	case "split":
		return fSplit
	case "sub":
		return fSub
	case "gsub":
		return fGsub
	case "gensub":
		return fGensub
	case "match":
		return fMatch
	case "sprintf":
		return fSprintf
	case "tolower":
		return fTolower
	case "toupper":
		return fToupper
	case "system":
		return fSystem
	case "close":
		return fClose
	case "fflush":
		return fFflush
	case "int":
		return fInt
	case "sqrt":
		return fSqrt
	case "exp":
		return fExp
	case "log":
		return fLog
	case "sin":
		return fSin
	case "cos":
		return fCos
	case "atan2":
		return fAtan2
	case "rand":
		return fRand
	case "srand":
		return fSrand
	case "systime":
		return fSystime
	case "strftime":
		return fStrftime
	case "mktime":
		return fMktime
	case "strtonum":
		return fStrtonum
	case "and":
		return fAnd
	case "or":
		return fOr
	case "xor":
		return fXor
	case "compl":
		return fCompl
	case "lshift":
		return fLshift
	case "rshift":
		return fRshift
	case "asort":
		return fAsort
	case "asorti":
		return fAsorti
	case "patsplit":
		return fPatsplit
	case "isarray":
		return fIsarray
	case "typeof":
		return fTypeof
	case "mkbool":
		return fMkbool
	}
	return 0
}

// arity tells how few and how many arguments a function takes.
func (f builtin) arity() (least, most int) {
	const many = 1 << 20
	switch f {
	case fLength, fSrand, fFflush:
		return 0, 1
	case fSubstr:
		return 2, 3
	case fIndex, fAtan2, fLshift, fRshift:
		return 2, 2
	case fSplit, fPatsplit:
		return 2, 4
	case fSub, fGsub:
		return 2, 3
	case fGensub:
		return 3, 4
	case fMatch:
		return 2, 3
	case fSprintf:
		return 1, many
	case fRand, fSystime:
		return 0, 0
	case fStrftime:
		return 0, 3
	case fMktime, fClose, fTypeof:
		return 1, 2
	case fAnd, fOr, fXor:
		return 2, many
	case fAsort, fAsorti:
		return 1, 3
	}
	return 1, 1
}
