// Package api is what a server and its clients say to each other: paths,
// bodies, errors and frames. It is pure: it does no I/O but on the readers and
// writers that it is handed.
//
// Where a type of package paddock says it already, that type is the body: Spec,
// Status, Info, Update, Exit, Limits. Durations are nanoseconds, sizes bytes,
// times RFC 3339. What a guest may choose byte by byte (arguments, names of
// files) is [Bytes].
package api
