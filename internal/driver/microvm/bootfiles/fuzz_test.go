package bootfiles

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"
)

// No input file ends the program, or yields more than this many bytes.
const most = 1 << 20

func FuzzKernel(f *testing.F) {
	kernel := testKernel(pvhEntry, "virtio-mmio\x00")
	f.Add(kernel)
	f.Add(testModule(testRelease, "virtio"))
	f.Add(signed(testModule(testRelease, "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		_, _ = pvh(r)
		if got, err := release(bytes.NewReader(data)); err == nil && !validRelease(got) {
			t.Errorf("release %q", got)
		}
		_, _ = moduleInfo(data)
		if got := withoutSignature(data); len(got) > len(data) {
			t.Errorf("%d bytes of %d", len(got), len(data))
		}
	})
}

func FuzzImage(f *testing.F) {
	kernel := testKernel(pvhEntry, "")
	f.Add(testImage(testRelease, append(packedLZ4(kernel), 0, 0, 0, 0)))
	for kind := range packers() {
		f.Add(testImage(testRelease, packed(f, kind, kernel)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := readImage(data)
		if err != nil {
			return
		}
		if !validRelease(i.release) || len(i.packed) < 16 {
			t.Errorf("%q, %d bytes", i.release, len(i.packed))
		}
	})
}

func FuzzFormat(f *testing.F) {
	kernel := testKernel(pvhEntry, "")
	f.Add(packedLZ4(kernel))
	for kind := range packers() {
		f.Add(packed(f, kind, kernel))
	}
	f.Add([]byte("BZh9"))
	f.Add([]byte("\x5d\x00\x00\x10\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range magics() {
			if !bytes.HasPrefix(data, []byte(m.magic)) {
				continue
			}
			if got, err := m.unpack.read(bytes.NewReader(data), most); err == nil && len(got) > most {
				t.Errorf("%d bytes", len(got))
			}
		}
		absolute(bytes.Clone(data))
	})
}

func FuzzPackage(f *testing.F) {
	for _, kind := range []string{"", ".gz"} {
		f.Add(testPackage(f, kind, packageFiles(testRelease)[:2]))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		content, err := packageContent(bytes.NewReader(data))
		if err != nil {
			return
		}
		files := tar.NewReader(io.LimitReader(content, most))
		for {
			if _, err := files.Next(); err != nil {
				return
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add("QEMU emulator version 7.2.22 (Debian)\n")
	f.Add("x\n  Depends: linux-image-6.1.0-56-cloud-amd64\n")
	f.Add("Version: 1\nSHA256: 00\nflags: vmx\nbogomips : 1.0")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _, _ = engineVersion(text)
		if name, err := dependency(text); err == nil && name[0] == '-' {
			t.Errorf("%q", name)
		}
		if r, err := readRecord(text); err == nil && r.version[0] == '-' {
			t.Errorf("%q", r.version)
		}
		if n, err := khz(text); err == nil && n <= 0 {
			t.Errorf("%d", n)
		}
		_ = capable(text)
	})
}
