package pattern

// symbol returns the character that a collating symbol names: itself, or a name
// of the portable character set.
func symbol(name string) (rune, bool) {
	if name == "" {
		return 0, false
	}
	if c, n := (Options{}).decode(name); n == len(name) {
		return c, true
	}
	switch name {
	case "NUL":
		return 0, true
	case "SOH":
		return 1, true
	case "STX":
		return 2, true
	case "ETX":
		return 3, true
	case "EOT":
		return 4, true
	case "ENQ":
		return 5, true
	case "ACK":
		return 6, true
	case "alert", "BEL":
		return 7, true
	case "backspace", "BS":
		return 8, true
	case "tab", "HT":
		return 9, true
	case "newline", "LF":
		return 10, true
	case "vertical-tab", "VT":
		return 11, true
	case "form-feed", "FF":
		return 12, true
	case "carriage-return", "CR":
		return 13, true
	case "ESC":
		return 27, true
	case "space":
		return ' ', true
	case "exclamation-mark":
		return '!', true
	case "quotation-mark":
		return '"', true
	case "number-sign":
		return '#', true
	case "dollar-sign":
		return '$', true
	case "percent-sign":
		return '%', true
	case "ampersand":
		return '&', true
	case "apostrophe":
		return '\'', true
	case "left-parenthesis":
		return '(', true
	case "right-parenthesis":
		return ')', true
	case "asterisk":
		return '*', true
	case "plus-sign":
		return '+', true
	case "comma":
		return ',', true
	case "hyphen", "hyphen-minus", "minus", "dash":
		return '-', true
	case "period", "full-stop", "dot":
		return '.', true
	case "slash", "solidus":
		return '/', true
	case "zero":
		return '0', true
	case "one":
		return '1', true
	case "two":
		return '2', true
	case "three":
		return '3', true
	case "four":
		return '4', true
	case "five":
		return '5', true
	case "six":
		return '6', true
	case "seven":
		return '7', true
	case "eight":
		return '8', true
	case "nine":
		return '9', true
	case "colon":
		return ':', true
	case "semicolon":
		return ';', true
	case "less-than-sign":
		return '<', true
	case "equals-sign":
		return '=', true
	case "greater-than-sign":
		return '>', true
	case "question-mark":
		return '?', true
	case "commercial-at":
		return '@', true
	case "left-square-bracket":
		return '[', true
	case "backslash", "reverse-solidus":
		return '\\', true
	case "right-square-bracket":
		return ']', true
	case "circumflex", "circumflex-accent":
		return '^', true
	case "underscore", "low-line":
		return '_', true
	case "grave-accent":
		return '`', true
	case "left-brace", "left-curly-bracket":
		return '{', true
	case "vertical-line":
		return '|', true
	case "right-brace", "right-curly-bracket":
		return '}', true
	case "tilde":
		return '~', true
	case "DEL":
		return 127, true
	}
	return 0, false
}
