// Package variable stores a shell's variables as bash has them: scalars,
// indexed and associative arrays, name references, attributes, dynamic scopes
// of functions, temporary environments, and variables with computed values.
//
// A [Store] belongs to one shell and is used by one goroutine at a time.
// [Store.Fork] makes the store of a shell that runs beside it, [Store.Borrow]
// that of a shell for which it waits; neither copies a variable before one of
// them writes to it.
//
// Values are bytes without NUL. What they take is counted by a [Meter], the
// stores that share values each counting them.
//
// Elements of an associative array come in the order in which bash 5.2 has
// them, which is that of its hash table, so that scripts that print
// ${!array[@]} print the same.
package variable
