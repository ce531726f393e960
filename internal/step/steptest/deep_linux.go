package steptest

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Deep promises that nothing changes whose path is too long for a record: a command could take any change out of it so.
func Deep(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := begin(t, base, open)
	deep, name := s.deep(t)
	s.exec(t, `long=`+name+`
		fails() { if "$@" 2> /tmp/why; then echo "it goes well: $*" | cut -c1-60; exit 1; fi; }
		made=$(printf %0100d 1)
		while [ ${#PWD} -lt 3930 ]; do mkdir $made || exit 1; cd $made || exit 1; done
		fails mv /work/text $long
		grep -q 'name too long' /tmp/why || { cat /tmp/why; exit 1; }
		fails ln /work/text $long
		fails ln -s /work/text $long
		fails mkdir $long
		fails sh -c "echo evil > $long"
		fails mv -n /work/src $long
		cd /work && rm -rf $made || exit 1
		for part in `+deep+`; do cd $part || exit 1; done
		fails sh -c "echo evil > $long"
		chmod 777 $long 2> /dev/null; : that it fails is not told by each guest kernel
		fails mv $long /work/out
		fails ln $long /work/out
		fails rm -f $long
		echo kept > /work/text`)
	s.close(t)
	if got := s.undeep(t, deep, name); got != "deep" {
		t.Errorf("the file whose path is too long is %q", got)
	}
	list, err := s.journal.List(t.Context(), step.Filter{Directory: s.work})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if r := &list[i]; r.Missed > 0 || r.Incomplete {
			t.Errorf("%+v", r)
		}
		if list[i].Changed > 0 {
			s.undo(t, list[i].Number)
		}
	}
	s.is(t, 0, "undo")
}

// deep makes a file whose path is too long. It returns the directories above it, and its name.
func (s *session) deep(t *testing.T) (dirs, name string) {
	t.Helper()
	name = strings.Repeat("x", 200)
	r, err := os.OpenRoot(s.work)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	part := strings.Repeat("h", 200)
	for range 20 {
		dirs += " " + part
		if err := r.Mkdir(part, 0o777); err != nil {
			t.Fatal(err)
		}
		r = s.into(t, r, part)
	}
	if err := r.WriteFile(name, []byte("deep"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dirs, name
}

// undeep reads the file of deep, and removes it with all that is above.
func (s *session) undeep(t *testing.T, dirs, name string) string {
	t.Helper()
	r, err := os.OpenRoot(s.work)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Fields(dirs)
	for _, part := range parts {
		r = s.into(t, r, part)
	}
	defer r.Close()
	f, err := r.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := f.Stat(); err != nil || st.Mode().Perm()&0o111 != 0 {
		t.Errorf("its mode is %v, %v", st.Mode(), err)
	}
	if err := os.RemoveAll(s.work + "/" + parts[0]); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// into opens a directory in one, and closes that.
func (s *session) into(t *testing.T, r *os.Root, name string) *os.Root {
	t.Helper()
	next, err := r.OpenRoot(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return next
}
