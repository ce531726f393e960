package sort

// Version compares two names as GNU's version sort does: numbers within them
// count by value, and what looks like the extension of a file counts only if
// all else is the same.
func Version(a, b []byte) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) - len(b)
	case a[0] == '.' && b[0] != '.':
		return -1
	case b[0] == '.' && a[0] != '.':
		return 1
	case a[0] == '.':
		if x, y := dots(a), dots(b); x != y || x < 2 {
			return x - y
		}
	}
	x, y := stem(a), stem(b)
	if c := versions(a[:x], b[:y]); c != 0 || x == len(a) && y == len(b) {
		return c
	}
	return versions(a, b)
}

// dots ranks the names that begin with a dot: "." and ".." before all others.
func dots(s []byte) int {
	switch string(s) {
	case ".":
		return 0
	case "..":
		return 1
	}
	return 2
}

// stem tells where the extensions begin: dots, each with a letter or tilde
// behind it, and letters, digits and tildes from there on.
func stem(s []byte) int {
	for i, at := 0, 0; ; {
		for i+1 < len(s) && s[i] == '.' && (isLetter(s[i+1]) || s[i+1] == '~') {
			i += 2
			for i < len(s) && (isLetter(s[i]) || isDigit(s[i]) || s[i] == '~') {
				i++
			}
		}
		if i == len(s) {
			return at
		}
		i++
		at = i
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// weight ranks what is no digit: a tilde before the end, that before letters,
// those before all else.
func weight(s []byte, i int) int {
	switch {
	case i >= len(s):
		return -1
	case isDigit(s[i]):
		return 0
	case isLetter(s[i]):
		return int(s[i])
	case s[i] == '~':
		return -2
	}
	return int(s[i]) + 256
}

func versions(a, b []byte) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !isDigit(a[i]) || j < len(b) && !isDigit(b[j]) {
			if x, y := weight(a, i), weight(b, j); x != y {
				return x - y
			}
			i++
			j++
		}
		i, j = min(i, len(a)), min(j, len(b))
		for i < len(a) && a[i] == '0' {
			i++
		}
		for j < len(b) && b[j] == '0' {
			j++
		}
		x, y := digits(a[i:]), digits(b[j:])
		if x != y {
			return x - y
		}
		for k := range x {
			if a[i+k] != b[j+k] {
				return int(a[i+k]) - int(b[j+k])
			}
		}
		i, j = i+x, j+y
	}
	return 0
}
