// Package agenthook knows the hooks of coding agents that stay on the host: which file names them, what an agent tells
// them before its shell tool runs a command, and what it takes for an answer. It puts a command into a shell's text, and
// entries into files of settings that keep their comments, their order and what it does not know. It does no I/O.
package agenthook
