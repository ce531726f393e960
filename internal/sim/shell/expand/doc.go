// Package expand performs the expansions of bash 5.2: braces, tildes,
// parameters, command substitutions, arithmetic, word splitting and pathname
// expansion.
//
// [Compile] looks at a word once; what it gives does not change and may be used
// by many shells at the same time. An [Expander] belongs to one shell.
//
// All text is bytes. Characters, where they count, are UTF-8; a byte that is no
// part of one counts as one.
package expand
