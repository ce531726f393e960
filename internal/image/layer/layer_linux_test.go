package layer

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAttributesAreLeftOut(t *testing.T) {
	tree, top := planted(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o755, PAXRecords: map[string]string{
		"SCHILY.xattr.user.a": "b", "SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "SCHILY.acl.access": "user::rwx",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tree.Unpack(&b); err != nil {
		t.Fatal(err)
	}
	list := make([]byte, 1000)
	n, err := syscall.Listxattr(filepath.Join(top, "tree", "a"), list)
	if err != nil {
		t.Skipf("this file system has no extended attributes: %v", err)
	}
	if bytes.Contains(list[:n], []byte("user.a")) || bytes.Contains(list[:n], []byte("capability")) || bytes.Contains(list[:n], []byte("posix_acl")) {
		t.Errorf("the file has %q", list[:n])
	}
}
