package fileserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestARealKernelMounts makes this host's kernel mount a share in its own mount namespace,
// and runs programs in it.
func TestARealKernelMounts(t *testing.T) {
	const child = "PADDOCK_SHARE_MOUNTS"
	if os.Getenv(child) != "" {
		mountAndWork(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no /dev/fuse")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("no mount namespaces here")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

// A fuse carries requests of the kernel to a connection, and the answers back.
type fuse struct {
	fd   int
	conn atomic.Pointer[net.Conn]
}

func (f *fuse) up() {
	buf := make([]byte, maxMessage)
	for {
		n, err := syscall.Read(f.fd, buf)
		if err == syscall.EINTR || err == syscall.ENOENT || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return // it is unmounted
		}
		_, _ = (*f.conn.Load()).Write(buf[:n])
	}
}

func (f *fuse) down(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		head, err := in.Peek(4)
		if err != nil {
			return
		}
		reply := make([]byte, binary.LittleEndian.Uint32(head))
		if _, err := io.ReadFull(in, reply); err != nil {
			return
		}
		_, _ = syscall.Write(f.fd, reply)
	}
}

// join serves the kernel's requests from now on.
func (f *fuse) join(t *testing.T, s *Server) (leave func()) {
	ours, theirs := pair(t)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(theirs) }()
	f.conn.Store(&ours)
	go f.down(ours)
	return func() {
		ours.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

const work1 = `set -e
cd "$1"; mnt=$PWD/mnt
test "$(cat mnt/usr/bin/tool)" = "a tool"
mnt/usr/bin/true
test "$(ls mnt/usr/many | wc -l)" = 2000
test "$(find mnt/usr/many -size 0 | wc -l)" = 2000
cmp mnt/usr/bin/true root/usr/bin/true
! echo x > mnt/usr/x
! rm -f mnt/usr/bin/tool
cd mnt/work
echo one > a; echo two >> a; test "$(cat a | tr '\n' .)" = one.two.
mv a sub/b; test ! -e a; test "$(head -n1 sub/b)" = one
ln sub/b c; test c -ef sub/b; test "$(stat -c %h c)" = 2
ln -s sub/b d; test "$(readlink d)" = sub/b; test "$(tail -n1 d)" = two
mkdir -p x/y/z; cp -a sub x/y/z; diff -r sub x/y/z/sub; rm -r x; test ! -e x
truncate -s 5 c; test "$(stat -c %s sub/b)" = 5
chmod 600 c; test "$(stat -c %a c)" = 600
touch -d @1000000 c; test "$(stat -c %Y c)" = 1000000
! chmod u+s c
! mknod dev c 1 3
! chown 12345 c
mkfifo p; test -p p; rm p c d
dd if=/dev/zero of=big bs=1M count=8 conv=fsync 2>/dev/null; test "$(stat -c %s big)" = 8388608
cmp -n 8388608 big /dev/zero; rm big
i=0; while test $i -lt 300; do : > f$i; i=$((i+1)); done
test "$(ls | grep -c '^f[0-9]')" = 300
rm f[0-9]*; test "$(ls | grep -c '^f[0-9]')" = 0 || test $? = 1
if command -v python3 >/dev/null; then
  python3 -c 'import mmap
f = open("m", "w+b"); f.truncate(8192); g = open("m", "ab"); m = mmap.mmap(f.fileno(), 8192)
m[0:5] = b"hello"; m[8190:8192] = b"!!"; m.flush(); g.write(b"end"); g.close(); m.close(); f.close()
d = open("m", "rb").read(); assert len(d) == 8195 and d[:5] == b"hello" and d[8190:] == b"!!end", d'
  cmp m ../../root/work/m
fi
if command -v git >/dev/null; then
  git init -q r; cd r; echo a > a; git add a
  git -c user.name=n -c user.email=e commit -qm m; test -z "$(git status --porcelain)"; git fsck --strict; cd ..
fi
cd ../..
mkdir layer merged; mount -t tmpfs none layer; mkdir layer/upper layer/work
mount -t overlay -o lowerdir=mnt,upperdir=layer/upper,workdir=layer/work none merged
merged/usr/bin/true
test "$(cat merged/usr/bin/tool)" = "a tool"
echo more >> merged/usr/bin/tool; test "$(wc -l < merged/usr/bin/tool)" = 1
mv merged/usr/bin merged/usr/tools 2>/dev/null || cp -a merged/usr/bin merged/usr/tools
merged/usr/tools/true
rm -r merged/usr/many; test ! -e merged/usr/many
test "$(cat mnt/usr/bin/tool)" = "a tool"
`

// work2 continues on another connection, to another server, with its open files.
const work2 = `set -e
cd "$1/mnt/work"
echo held > held; exec 3< held; exec 4>> held
echo ready; read line
echo on >&4; test "$(cat <&3 | tr '\n' .)" = held.on.
test "$(cat sub/deep)" = deep; ls >/dev/null; echo x > y; ../usr/bin/true
`

func mountAndWork(t *testing.T) {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("no mounts of its own: %v", err)
	}
	root := tree(t)
	top := filepath.Dir(root)
	mnt := filepath.Join(top, "mnt")
	program, err := os.ReadFile("/bin/true")
	if err := errors.Join(err, os.WriteFile(filepath.Join(root, "usr/bin/true"), program, 0o755), os.Mkdir(mnt, 0o755),
		os.Mkdir(filepath.Join(root, "usr/many"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(root, "usr/many", "entry"+strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	syscall.Umask(0)
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE: %v", err)
	}
	f := &fuse{fd: fd}
	s, err := New(options(t, root, work(true)))
	if err != nil {
		t.Fatal(err)
	}
	leave := f.join(t, s)
	if err := syscall.Mount("none", mnt, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, "fd="+strconv.Itoa(fd)+
		",rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=1048576"); err != nil {
		t.Skipf("no FUSE mounts: %v", err)
	}
	go f.up()

	// Shells run the programs, because a program's start would wait for this process.
	shell := func(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script, "sh", top) }
	if out, err := shell("set -x;" + work1).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}

	cmd := shell(work2)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	leave()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = Restore(options(t, root, work(true)), state); err != nil {
		t.Fatal(err)
	}
	leave = f.join(t, s)
	_, _ = io.WriteString(in, "\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"merged", "layer", "mnt"} {
		if err := syscall.Unmount(filepath.Join(top, dir), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	leave()
	s.Close()
}
