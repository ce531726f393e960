package boxinit

import (
	"strings"
	"testing"
)

func TestARequestToWatchIsChecked(t *testing.T) {
	for what, r := range map[string]struct {
		data string
		ok   bool
	}{
		"a path":             {"\x01\x07\x00\x00\x00/work/src", true},
		"no path":            {"\x01\x07\x00\x00\x00", false},
		"a relative path":    {"\x01\x07\x00\x00\x00work", false},
		"a path upwards":     {"\x01\x07\x00\x00\x00/work/../etc", false},
		"a path with a dot":  {"\x01\x07\x00\x00\x00/work/./x", false},
		"a path with nobody": {"\x01\x07\x00\x00\x00/work//x", false},
		"the root":           {"\x01\x07\x00\x00\x00/", false},
		"a zero":             {"\x01\x07\x00\x00\x00/work\x00/x", false},
		"too long":           {"\x01\x07\x00\x00\x00/" + strings.Repeat("x", watchPathMax), false},
		"the end of a watch": {"\x02\x07\x00\x00\x00", true},
		"with a path":        {"\x02\x07\x00\x00\x00/work", false},
		"an answer":          {"\x03\x00\x00\x00\x00", true},
		"another kind":       {"\x04\x07\x00\x00\x00", false},
		"nothing":            {"", false},
		"a part":             {"\x01\x07", false},
	} {
		got, err := ParseWatchRequest([]byte(r.data))
		if (err == nil) != r.ok {
			t.Errorf("%s: %+v %v", what, got, err)
		}
		if err == nil && string(got.Bytes()) != r.data {
			t.Errorf("%s: it is written as %q", what, got.Bytes())
		}
	}
}

func TestAReportOfAChangeIsReadAsItWasWritten(t *testing.T) {
	want := WatchReport{Kind: WatchChange, ID: 7, Mask: 0x40000100, Cookie: 9, Name: "new\nfile"}
	if got, err := ParseWatchReport(want.Bytes()); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for _, data := range []string{"", "\x03", strings.Repeat("\x00", 13), "\x07" + strings.Repeat("\x00", 12), "\x03" + strings.Repeat("x", 12+watchNameMax+1)} {
		if got, err := ParseWatchReport([]byte(data)); err == nil {
			t.Errorf("%q: %+v", data, got)
		}
	}
}

func FuzzParseWatchRequest(f *testing.F) {
	for _, seed := range []string{
		"\x01\x07\x00\x00\x00/work/src", "\x01\x07\x00\x00\x00/work/../etc", "\x01\x07\x00\x00\x00/work\x00", "\x01\xff\xff\xff\xff/\xff\n",
		"\x02\x07\x00\x00\x00", "\x03\x07\x00\x00\x00", "\x02\x07\x00\x00\x00x", "\x01", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseWatchRequest(data)
		if err != nil {
			return
		}
		if string(r.Bytes()) != string(data) {
			t.Errorf("%q is written as %q", data, r.Bytes())
		}
		if r.Kind == WatchAdd && (r.Path[0] != '/' || strings.Contains(r.Path+"/", "/../")) {
			t.Errorf("the path %q", r.Path)
		}
	})
}

func FuzzParseWatchReport(f *testing.F) {
	f.Add(WatchReport{Kind: WatchChange, ID: 7, Mask: 0x40000100, Cookie: 9, Name: "new\nfile\xff"}.Bytes())
	f.Add(WatchReport{Kind: WatchBeQuiet, ID: 1}.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseWatchReport(data)
		if err == nil && string(r.Bytes()) != string(data) {
			t.Errorf("%q is written as %q", data, r.Bytes())
		}
		if len(r.Name) > watchNameMax {
			t.Errorf("a name of %d bytes", len(r.Name))
		}
	})
}
