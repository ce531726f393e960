// Package step keeps a journal of steps: what each command of a sandbox changed in the directories of the host that it
// could write, and the contents from before. Undo brings back the state before a step, path by path, where the present
// is what the step left.
//
// # Recording
//
// Whoever performs the changes of a sandbox tells a [Recorder] about each change before it performs the change. A call
// names a root, which is a directory of the host that was opened when the step began, and a path below it. The Recorder
// looks at the file itself and believes nothing else. Calls for changes that destroy something return after the old
// contents are stored. Calls for creations and for moves to free names may arrive after the fact, in order. If a change
// fails after it was told, [Recorder.Failed] takes it back.
//
// The Recorder follows where each present name came from, so that it stores the contents of a file once per step, by
// the path that the file had when the step began, and no contents of files that the step itself made. A moved directory
// takes its contents along. At the end of the step the net effect is compared with the disk, and written as a [Record].
//
// Contents are in a store of package snapshot below the directory of the journal. A log of the step, and a draft in the
// store, are written as the step goes on. If the process is killed, [Journal.Recover] makes a record of them.
//
// # Undo
//
// Undo compares each path with what the record says came after. It changes only paths that are equal, and reports the
// others as conflicts. Files are written under a temporary name and exchanged. What comes out of the exchange is
// compared once more, so that an edit of the last moment is put back. Undo is recorded as a step of its own, so redo is
// the undo of that step. What cannot be kept for it is left alone, and so is what another step changed at the same time.
//
// # Review
//
// [Reviews] gives a command [Layers]: directories that take what it changes, as the upper directories of overlays. When
// all its processes are gone, the layers are compared with the directories below them, and become a proposal: a [Record]
// of the kind "review" in a journal of its own, where Before is what a path is to become, and After is its base.
// [Journal.Apply] is an undo of that record, with three differences: text whose base is not there any more is merged, a
// protected name is never written, and what cannot be kept for an undo of it is changed all the same.
//
// The base of a file is what it was when the command began. A file that was changed since by the time of its inode has no
// base, unless [Layers.Changing] copied it before. That is told by the sandbox, so it only ever copies what nobody has
// changed since the command began: a forged report cannot make a later state the base.
//
// An old time proves only what a file is, not that it was at its path. So each directory that it is in must be where it
// was: because its time is old too, because the kernel says that the layer has a copy of that very directory, or because
// Changing came upon it while its time was old. A path where nothing is was free if no name in its directory changed since,
// or if the layer has no copy of a file there, or one of a file that the command moved. What is not proven is a conflict.
//
// # Trust
//
// The sandbox is hostile, and so are its reports. No call follows a link or leaves the root: paths are resolved by
// openat2 from the handle of the root, beneath it and without symbolic links. Only regular files are opened. All that is
// kept is bounded.
//
// A forged report can make a record wrong, and so an undo useless. It cannot make undo do what the sandbox could not
// have done itself, because of these rules:
//   - Contents and owners come from the host's disk, never from a report.
//   - A file that the step claims to have made is removed only if its inode changed during the step.
//   - A protected name (package protect) is written only with contents that the Recorder saw under that very name.
//     It is never the end of a move. It is removed only where a sandbox may make it, such as the configuration of git.
//     Package gitconfigcheck judges configurations of git as it judges those that a sandbox writes.
//   - A name that is protected only because its directory is a repository of git by what is in it, as it is now, does not
//     come back at all, but for a configuration that is let through: when it was seen a sandbox may have written it.
//   - No undo makes a symbolic link below .git that was not there before the step, nor completes a bare repository with
//     names that git obeys, of which the completing name may be one. It judges under the same locks on directories as the
//     brokers of sandboxes, and once more when the file is in its place.
//   - Files are built, and taken away, in a directory .paddock beside their place. That name is protected, so no sandbox
//     that runs meanwhile has a descriptor of what lands.
//   - Set-id bits are not restored, nor devices or sockets. As root, a file gets the owner that the Recorder saw if it
//     saw the file under its own name or if that is the owner of the root directory. Otherwise it gets the owner of the
//     root directory. Other users own what they restore.
//
// # What is not kept
//
// Extended attributes, access control lists, and the contents of devices and sockets are not kept. Contents of trees that
// tools rebuild (see [Rebuildable]) are not kept either: the record names such a tree in its Left. A tree counts by the
// path at the start of the step. A file that an earlier step moved into such a tree is not kept any more. The times of a
// directory are those when the recorder saw it, which is after what was in it went.
//
// If a file has several names and the step changes it by one of them, undo writes the contents in place, so that all names
// have them again. If the step replaced that name by another file meanwhile, the other names keep what the step wrote.
package step
