package supervisor

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/control/client"
	"gvisor.dev/gvisor/pkg/sentry/control"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	"gvisor.dev/gvisor/pkg/state/statefile"
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/config"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/overlaysize"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// call calls the sentry. It keeps only the first line of an error, which may be a page
// long.
func (s *supervisor) call(what, method string, arg any) error { return s.ask(what, method, arg, nil) }

// ask is call with an answer.
func (s *supervisor) ask(what, method string, arg, answer any) error {
	conn, err := client.ConnectTo(s.box.Sandbox.GetControlSocketPath())
	if err != nil {
		return fmt.Errorf("%s: connect to gVisor: %w", what, err)
	}
	defer func() { _ = conn.Close() }()
	return said(what, conn.Call(method, arg, answer))
}

func said(what string, err error) error {
	if err == nil {
		return nil
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s: gVisor: %s: %w", what, line, paddock.Internal)
}

// Save implements boxinit.GuestKernel. Files are, in this order, the state, the index of
// pages, and the pages. gVisor's own option to save and exit would end the box even if
// saving failed. So Save pauses the sandbox and saves it as one that continues. Only then
// may the host end it.
func (s *supervisor) Save(files []*os.File, stop bool, room boxinit.Room) error {
	if len(files) != 3 {
		return fmt.Errorf("save memory to %d files: %w", len(files), paddock.Internal)
	}
	if err := s.watch.Quiet(); err != nil {
		return fmt.Errorf("save memory: %w", err)
	}
	err := s.save(files, stop, room.All)
	s.stopped = err == nil && stop
	if !s.stopped {
		s.watch.Wake()
	}
	return err
}

func (s *supervisor) save(files []*os.File, stop bool, limit int64) error {
	if stop {
		if err := s.call("pause", boot.ContMgrPause, nil); err != nil {
			return err
		}
	}
	err := s.checkpoint(files, limit)
	if err != nil && stop {
		_ = s.call("go on", boot.ContMgrResume, nil) // return why it was not saved
	}
	return err
}

func (s *supervisor) checkpoint(files []*os.File, limit int64) error {
	k, theirs, err := newKeep(files, limit)
	if err != nil {
		return fmt.Errorf("save memory: %w", err)
	}
	defer theirs.Close()
	err = s.call("save memory", boot.ContMgrCheckpoint, &control.SaveOpts{
		Metadata: statefile.CompressionLevelNone.ToMetadata(), HavePagesFile: true, AppMFExcludeCommittedZeroPages: true,
		FilePayload: urpc.FilePayload{Files: []*os.File{theirs}}, UseCheckpointGofer: true, Resume: true,
	})
	k.stop()
	if k.over() {
		return tooLarge(limit)
	}
	return err
}

// Go implements boxinit.GuestKernel.
func (s *supervisor) Go() error {
	if !s.stopped {
		return nil // gVisor fails if the sandbox is not paused
	}
	s.stopped = false
	defer s.watch.Wake()
	return s.call("go on", boot.ContMgrResume, nil)
}

// Archive implements boxinit.GuestKernel. A change during the read would corrupt the
// archive, so the sandbox is paused meanwhile.
func (s *supervisor) Archive(file *os.File, room boxinit.Room) error {
	if err := s.call("pause", boot.ContMgrPause, nil); err != nil {
		return err
	}
	err := s.fits(room)
	if err == nil {
		err = copyUpTo(file, room.All, func(to *os.File) error { return said("archive files", s.box.TarRootfsUpperLayer(to)) })
	}
	if e := s.call("go on", boot.ContMgrResume, nil); err == nil {
		err = e
	}
	return err
}

// fits asks the sentry whether it can write an archive without running out of memory. The
// answer does not bound the size of the archive.
func (s *supervisor) fits(room boxinit.Room) error {
	var sessions []seccheck.SessionConfig
	if err := s.ask("count files", boot.ContMgrListTraceSessions, nil, &sessions); err != nil {
		return err
	}
	c, err := overlaysize.Read(sessions)
	switch {
	case err != nil:
		return fmt.Errorf("count files: %w: %w", err, paddock.Internal)
	case c.Largest > room.File:
		return fmt.Errorf("the file %q has %d MiB including holes, and one file may have at most %d MiB within the limits of disk and memory: %w",
			c.Name, c.Largest>>20, room.File>>20, paddock.Exhausted)
	case c.Content > room.Content:
		return fmt.Errorf("the files have %d MiB including holes, and may have at most %d MiB within the limit of the disk; the largest is %q: %w",
			c.Content>>20, room.Content>>20, c.Name, paddock.Exhausted)
	case c.Bytes > room.All:
		return fmt.Errorf("the files and their names need %d MiB, and at most %d MiB can be saved: %w", c.Bytes>>20, room.All>>20, paddock.Exhausted)
	}
	return nil
}

// layerAnnotation names the archive that the private layer starts from. It must be the same
// when memory is restored. So it always names one path, a link that leads to a descriptor
// or to nothing.
const layerAnnotation = "dev.gvisor.tar.rootfs.upper"

var layerLink = filepath.Join(boxinit.State, "layer")

// firstLayer is the archive with which the private layer over an image begins. gVisor would cover an empty /tmp with a
// file system of its own. The disk limit does not apply to that, and snapshots of files do not contain it.
func firstLayer() (*os.File, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, dir := range []struct {
		name string
		mode int64
	}{{"./", 0o755}, {"./tmp/", 0o1777}, {"./tmp/.X11-unix/", 0o1777}} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name, Mode: dir.mode}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sys.SealedData("layer", buf.Bytes())
}

// beginning makes the link, and returns the annotations of a box.
func (s *supervisor) beginning(k *boxinit.GuestKernelConfig, image []*os.File) (map[string]string, error) {
	annotations := map[string]string{}
	if k.ImageFile {
		annotations[boot.RootfsPrefix+"source"] = boxinit.ImageFile
		annotations[boot.RootfsPrefix+"type"] = "erofs"
		annotations[boot.RootfsPrefix+"overlay"] = string(config.MemoryOverlay)
		annotations[boot.RootfsPrefix+"options"] = "size=" + strconv.FormatInt(k.Disk, 10)
	}
	if !k.Layered {
		return annotations, nil
	}
	to, err := s.beginsWith(k, image)
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(to, layerLink); err != nil {
		return nil, err
	}
	annotations[layerAnnotation] = layerLink
	return annotations, nil
}

// beginsWith returns a name of the archive with which the private layer begins, and keeps that open: gVisor opens it by
// its number when it starts.
func (s *supervisor) beginsWith(k *boxinit.GuestKernelConfig, image []*os.File) (string, error) {
	switch {
	case k.Memory:
		return os.DevNull, nil
	case len(image) == 1:
		s.layer = image[0]
	case k.ImageFile:
		var err error
		if s.layer, err = firstLayer(); err != nil {
			return "", err
		}
	default:
		return os.DevNull, nil
	}
	return fmt.Sprintf("/proc/self/fd/%d", s.layer.Fd()), nil
}
