package expand

// A Kind says what a word failed by, and so what the shell does then.
type Kind uint8

// The kinds of errors.
const (
	Unbound    Kind = iota // nounset: a shell that is not interactive ends
	Unset                  // ${x?}: likewise
	Bad                    // bad substitution and the like: likewise
	Assigning              // ${x=} of what cannot be assigned to
	Arithmetic             // arithmetic: the command is not run
	NoMatch                // failglob: the command is not run
	Indirect               // ${!x}: the command is not run
	TooDeep                // the command is not run
)

// An Error is a word that cannot be expanded. Its text is what bash prints
// after its own name and the line.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }
