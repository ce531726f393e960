// Package api defines the messages between a server and its clients: paths, bodies, errors
// and frames. It does no I/O except on the readers and writers that it is given.
//
// If a type of package paddock fits, that type is the body: Spec, Status, Info, Update,
// Exit, Limits. Durations are nanoseconds, sizes are bytes, times are RFC 3339. Text whose
// bytes a guest may choose (arguments, file names) is [Bytes].
package api
