// Package observe reports the calls of a driver to observers: the begin and the end of each
// call. It changes no answer. Metrics and traces are observers, so no driver has a branch
// for them.
//
// # What an observer gets
//
// An observer gets the [Op], the tier and the error of a call. It gets no sandbox, command,
// path or caller. Observers write to systems that many people read, and their data must
// not grow with the use of tenants.
//
// Of processes, open files and watchers only the creation is reported, not the use.
package observe
