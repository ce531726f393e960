// Package agentprofile has the profiles of coding agents, and the state that an agent keeps between sandboxes.
//
// A profile is a YAML file. Those of this package are embedded; a file of the user takes the place of one as a whole. A
// project adds to a profile, in its file .paddock.yaml, only what it may add, and only after the user has approved the
// file.
//
// # Attackers
//
// A hostile project is an attacker before anything runs. It chooses every file of the workspace:
//
//   - Its .paddock.yaml may add hosts that data could be sent to, and arguments. So it counts only if the user approved
//     exactly these bytes for exactly this directory. It can never name a program, state, a key or a login.
//   - Its .paddock.yaml may be a link to a file of the user, a FIFO, or huge. It is opened without following a link and
//     without waiting, and read up to a bound.
//   - A directory of it in PATH may hold a program that has the name of an agent. A program in the workspace is refused.
//   - Names of directories reach the terminal and files of state. State is named by a hash, and text is escaped.
//   - It may take the place of another project at the same path. Its state is another one, as its caches are.
//
// An earlier sandbox is an attacker too. It wrote everything below the directory "home" of a state, and may have left
// links, FIFOs, deep trees, huge files, and settings that an agent of the host would run:
//
//   - The host's code opens such a file below the open directory of the state, and follows no link on the way. It reads
//     regular files up to a bound, and tells the others.
//   - Nothing of it is ever written to the host by itself. A file that the host's agent obeys is taken over only by
//     name, after the difference was shown, and only as the bytes that were shown.
//   - What was given to the sandbox at first is kept beside it, in the directory "base", which no sandbox sees, so that
//     the sandbox cannot hide a difference.
//   - No other sandbox sees a state: the directory is below the data directory, which tiers hide from every mount. Only
//     a mount that says so, of a directory "home" of a state, is let through.
//   - Files of the host are copied without following a link, so a link in the host's settings gives nothing away.
package agentprofile
