// Package dockerfile reads a Dockerfile and says what a builder has to do for it: which stages there are, what each
// begins with, and which files to copy and which commands to run, one after the other.
//
// BuildKit's parser reads the text. This package bounds it, expands its variables as BuildKit does, and refuses
// what no builder of ours does: a build never runs without its sandbox, so that everything that asks for less
// isolation (--network=host, --security=insecure, --device) is an error, and so is what would need a daemon of
// Docker's. It does no I/O, and it has no effect on what it describes.
package dockerfile
