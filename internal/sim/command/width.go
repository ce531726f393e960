package command

import "unicode"

// RuneWidth returns the number of columns that a character takes on a screen.
func RuneWidth(c rune) int {
	switch {
	case c < 0x20 || c >= 0x7f && c < 0xa0:
		return 0
	case c < 0x300:
		return 1
	case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf) && c != 0xad, c >= 0x1160 && c <= 0x11ff:
		return 0
	case isWide(c):
		return 2
	}
	return 1
}

// isWide tells the characters of two columns, those that Unicode calls wide or
// fullwidth.
func isWide(c rune) bool {
	switch {
	case c < 0x1100:
		return false
	case c <= 0x115f, c >= 0x2e80 && c <= 0x303e, c >= 0x3041 && c <= 0x33ff, c >= 0x3400 && c <= 0x4dbf,
		c >= 0x4e00 && c <= 0x9fff, c >= 0xa000 && c <= 0xa4cf, c >= 0xa960 && c <= 0xa97f, c >= 0xac00 && c <= 0xd7a3,
		c >= 0xf900 && c <= 0xfaff, c >= 0xfe10 && c <= 0xfe19, c >= 0xfe30 && c <= 0xfe6f,
		c >= 0xff01 && c <= 0xff60, c >= 0xffe0 && c <= 0xffe6:
		return true
	case c == 0x231a, c == 0x231b, c == 0x2329, c == 0x232a, c >= 0x23e9 && c <= 0x23ec, c == 0x23f0, c == 0x23f3,
		c == 0x25fd, c == 0x25fe, c == 0x2614, c == 0x2615, c >= 0x2648 && c <= 0x2653, c == 0x267f, c == 0x2693,
		c == 0x26a1, c == 0x26aa, c == 0x26ab, c == 0x26bd, c == 0x26be, c == 0x26c4, c == 0x26c5, c == 0x26ce,
		c == 0x26d4, c == 0x26ea, c == 0x26f2, c == 0x26f3, c == 0x26f5, c == 0x26fa, c == 0x26fd, c == 0x2705,
		c == 0x270a, c == 0x270b, c == 0x2728, c == 0x274c, c == 0x274e, c >= 0x2753 && c <= 0x2755, c == 0x2757,
		c >= 0x2795 && c <= 0x2797, c == 0x27b0, c == 0x27bf, c == 0x2b1b, c == 0x2b1c, c == 0x2b50, c == 0x2b55:
		return true
	case c < 0x16fe0:
		return false
	case c <= 0x18aff, c >= 0x1b000 && c <= 0x1b2ff, c == 0x1f004, c == 0x1f0cf, c == 0x1f18e, c >= 0x1f191 && c <= 0x1f19a,
		c >= 0x1f200 && c <= 0x1f320, c >= 0x1f32d && c <= 0x1f335, c >= 0x1f337 && c <= 0x1f37c, c >= 0x1f37e && c <= 0x1f393,
		c >= 0x1f3a0 && c <= 0x1f3ca, c >= 0x1f3cf && c <= 0x1f3d3, c >= 0x1f3e0 && c <= 0x1f3f0, c == 0x1f3f4,
		c >= 0x1f3f8 && c <= 0x1f43e, c == 0x1f440, c >= 0x1f442 && c <= 0x1f4fc, c >= 0x1f4ff && c <= 0x1f53d,
		c >= 0x1f54b && c <= 0x1f54e, c >= 0x1f550 && c <= 0x1f567, c == 0x1f57a, c == 0x1f595, c == 0x1f596, c == 0x1f5a4,
		c >= 0x1f5fb && c <= 0x1f64f, c >= 0x1f680 && c <= 0x1f6c5, c == 0x1f6cc, c >= 0x1f6d0 && c <= 0x1f6d2,
		c >= 0x1f6d5 && c <= 0x1f6d7, c >= 0x1f6dd && c <= 0x1f6df, c == 0x1f6eb, c == 0x1f6ec, c >= 0x1f6f4 && c <= 0x1f6fc,
		c >= 0x1f7e0 && c <= 0x1f7eb, c >= 0x1f90c && c <= 0x1f93a, c >= 0x1f93c && c <= 0x1f945, c >= 0x1f947 && c <= 0x1f9ff,
		c >= 0x1fa70 && c <= 0x1faff, c >= 0x20000 && c <= 0x3fffd:
		return true
	}
	return false
}

// IsPrintable reports whether the locale C.UTF-8 calls a character printable.
func IsPrintable(c rune) bool {
	return unicode.IsGraphic(c) || unicode.In(c, unicode.Cf, unicode.Co)
}

// IsSpace reports whether the locale C.UTF-8 calls a character white space.
func IsSpace(c rune) bool {
	switch {
	case c == ' ', c >= '\t' && c <= '\r', c == 0x1680, c >= 0x2000 && c <= 0x2006, c >= 0x2008 && c <= 0x200a,
		c == 0x2028, c == 0x2029, c == 0x205f, c == 0x3000, c == 0x85:
		return true
	}
	return false
}
