// Package segment keeps an unbounded audit log as files of limited size. A [Writer] writes segments one after another
// into one directory. Each is a chain that can be verified alone; a finished one is closed, on the disk, and has its
// final name. The first event of each names the segment before it and that segment's last line, so a missing segment is
// noticed: [Verify] reads them all as one log. An [Uploader] copies finished segments to a store that speaks S3, and
// never overwrites an object there.
//
// One process at a time uses a directory. After a crash the next Writer finishes an unfinished segment as it is: it has
// no closing head, and verification says so.
package segment
