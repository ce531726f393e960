// Package snapshot stores the files of sandboxes in a form that every tier can write and read. A snapshot is a list of
// entries, the differences from the root that a sandbox started from, with the contents of files in blobs named by
// their SHA-256.
//
// A [Store] is a directory. All snapshots share the blobs, so equal contents are stored once. A snapshot is relative to
// its base (the root source), never to another snapshot, so each can be removed alone.
//
// IDs are random and not made from the contents, so a snapshot has its ID at once and is written afterwards. A checksum
// at the end of each list and the names of the blobs reveal a change on the disk.
//
// What is written is a draft until it is whole: a directory of its own, with its list and a name for each of its blobs.
// A writer that fails removes its draft, so that nobody can fill the disk with snapshots that do not exist. Writers and
// those that remove blobs exclude each other only while a draft is moved to its place.
//
// A [Draft] is one that lives as long as something whose end is not known, such as a command. It takes contents one by
// one, and outlives its writer: nobody collects it before it is resumed.
//
// Several programs may read and write a store at once. The package does not trust the data that it reads: no name can
// lead out of the tree, and every number is checked before use.
package snapshot
