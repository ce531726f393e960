// Package layer keeps the private files of boxes as snapshots of package snapshot, the form that every tier opens, and
// begins boxes with such snapshots, also those of other tiers.
//
// What a box wrote is read from the host's side: the private file system of a box on the host's kernel through a directory
// that its init gave before any command ran ([Save]), and that of a guest kernel from the archive that the kernel wrote
// ([FromArchive]). Both are hostile. A box begins with an archive that this package writes ([WriteArchive]), which the
// box's own init unpacks.
//
// An archive is a tar archive of an overlay's upper directory. A removed file is a character device 0:0, and a directory
// that hides the one below has the attribute trusted.overlay.opaque.
package layer
