// Package erofs makes one file with an EROFS file system of the layers of an image, as guest kernels mount it: not
// compressed, the contents of files in blocks of their own, and small directories and links beside their inodes.
//
// The format is that of https://docs.kernel.org/filesystems/erofs.html, and of that what gVisor reads: it maps the
// contents of files from the file, so that they are not inline, and it refuses inodes with extended attributes, so that
// there are none. File capabilities of an image thus have no effect.
//
// A layer is hostile input. Nothing of it is a name on this machine: the tree is made in memory, and only the file that
// the caller opened is written. Names, bytes, memory, depth and links are bounded. Owners, modes with their set-id bits, times,
// devices, pipes and hard links are those of the image; a device 0:0 is a removed file, as overlays have it. The same layers give the same bytes.
package erofs
