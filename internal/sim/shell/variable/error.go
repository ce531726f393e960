package variable

// A Kind says why a variable could not be changed.
type Kind uint8

// The kinds of errors.
const (
	IsReadOnly     Kind = iota // readonly variable
	CannotUnset                // cannot unset: readonly variable
	Invalid                    // not a valid identifier
	BadSubscript               // bad array subscript
	NotAssociative             // cannot convert indexed to associative array
	NotIndexed                 // cannot convert associative to indexed array
	CannotDestroy              // cannot destroy array variables in this way
	NotArray                   // not an array variable
	Circular                   // circular name reference
	SelfRef                    // nameref variable self references not allowed
	InvalidRef                 // invalid variable name for name reference
	ListToElement              // cannot assign list to array member
	NeedSubscript              // must use subscript when assigning associative array
	RefArray                   // reference variable cannot be an array
)

// An Error is a variable that could not be changed. Its text is bash's.
type Error struct {
	Kind Kind
	Name string // as it was written, with a subscript if that is to blame
}

func (e *Error) Error() string {
	switch e.Kind {
	case IsReadOnly:
		return e.Name + ": readonly variable"
	case CannotUnset:
		return e.Name + ": cannot unset: readonly variable"
	case Invalid:
		return "`" + e.Name + "': not a valid identifier"
	case BadSubscript:
		return e.Name + ": bad array subscript"
	case NotAssociative:
		return e.Name + ": cannot convert indexed to associative array"
	case NotIndexed:
		return e.Name + ": cannot convert associative to indexed array"
	case CannotDestroy:
		return e.Name + ": cannot destroy array variables in this way"
	case NotArray:
		return e.Name + ": not an array variable"
	case Circular:
		return e.Name + ": circular name reference"
	case SelfRef:
		return e.Name + ": nameref variable self references not allowed"
	case InvalidRef:
		return "`" + e.Name + "': invalid variable name for name reference"
	case ListToElement:
		return e.Name + ": cannot assign list to array member"
	case NeedSubscript:
		return e.Name + ": must use subscript when assigning associative array"
	case RefArray:
		return e.Name + ": reference variable cannot be an array"
	}
	return e.Name + ": cannot be changed"
}
