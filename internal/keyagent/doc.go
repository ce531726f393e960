// Package keyagent lets a sandbox use the keys of its caller's ssh-agent or gpg-agent, and do nothing else with that
// agent. It sits between two connections: one from a command in the sandbox, every byte of which is hostile, and one to
// the agent of the caller.
//
// It parses each request, passes on the few that use a key or list keys, in an encoding of its own, and refuses all
// others in the words of the protocol. It reports each use of a key and each refusal.
package keyagent
