// Package segment keeps a record without end as files of limited size. A [Writer]
// writes segments one after another, each a chain of its own that can be verified
// alone, into one directory; a finished one is closed, on the disk, and has its
// last name. The first event of each tells the name and the last line of the one
// before, so that one that is missing is missed: [Verify] reads them all as one
// record. An [Uploader] copies what is
// finished to a store that speaks S3, where what is there is never overwritten.
//
// A directory is one process's at a time. What a crash has left unfinished is
// finished as it is: it ends without a closing head, and says so when it is
// verified.
package segment
