// Package way is a sandbox's way out as the owner of the sandbox has it: the
// gateway's process, what the sandbox must know of it, and what it refused.
package way
