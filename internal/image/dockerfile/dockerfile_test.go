package dockerfile_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
)

// steps reads a file and runs through its last stage.
func steps(t *testing.T, text string, o dockerfile.Options) (*dockerfile.File, *dockerfile.State, []*dockerfile.Step) {
	t.Helper()
	f, err := dockerfile.Parse([]byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Begin(len(f.Stages)-1, image.Config{Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/srv"})
	var list []*dockerfile.Step
	for {
		step, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		if step == nil {
			return f, s, list
		}
		list = append(list, step)
	}
}

func TestTheStepsOfADockerfile(t *testing.T) {
	f, s, list := steps(t, `# a comment
ARG BASE=debian:13
FROM $BASE AS Build
RUN make

FROM scratch
ARG WHO=world
ARG NONE
ENV GREETING="hello $WHO" PATH=/opt/bin:$PATH
WORKDIR app
WORKDIR ./sub
USER daemon:users
LABEL a=b c="d e"
RUN echo "$GREETING" && \
    true
RUN ["/prog", "$GREETING"]
COPY --from=build --chown=1:2 --chmod=755 /out/a /out/b bin/
ADD dist.tar.gz .
EXPOSE 80 53/udp
VOLUME /data
SHELL ["/bin/bash", "-ec"]
ENTRYPOINT exec /prog
CMD ["serve"]
`, dockerfile.Options{Args: map[string]string{"WHO": "you"}})
	if f.Stages[0].Name != "build" || f.Stages[0].Base != "debian:13" || f.Stages[1].Base != dockerfile.Scratch {
		t.Errorf("stages are %+v", f.Stages)
	}
	want := image.Config{
		Env: []string{"PATH=/opt/bin:/usr/bin:/bin", "GREETING=hello you"}, Dir: "/srv/app/sub", User: "daemon:users", Labels: map[string]string{"a": "b", "c": "d e"},
		Ports: []string{"53/udp", "80/tcp"}, Volumes: []string{"/data"}, Shell: []string{"/bin/bash", "-ec"},
		Entrypoint: []string{"/bin/bash", "-ec", "exec /prog"}, Command: []string{"serve"},
	}
	if !reflect.DeepEqual(s.Config, want) {
		t.Errorf("the configuration is\n%+v, want\n%+v", s.Config, want)
	}
	var runs []*dockerfile.Run
	var copies []*dockerfile.Copy
	for _, step := range list {
		if step.Run != nil {
			runs = append(runs, step.Run)
		}
		if step.Copy != nil {
			copies = append(copies, step.Copy)
		}
	}
	if got := runs[0]; got.Args[0] != "/bin/sh" || !strings.HasPrefix(got.Args[2], `echo "$GREETING"`) || got.Dir != "/srv/app/sub" || got.User != "daemon:users" {
		t.Errorf("the first command is %+v", got)
	}
	if !slices.Contains(runs[0].Env, "WHO=you") || !slices.Contains(runs[0].Env, "GREETING=hello you") {
		t.Errorf("its variables are %q", runs[0].Env)
	}
	if got := runs[1].Args; !slices.Equal(got, []string{"/prog", "$GREETING"}) {
		t.Errorf("a command without a shell is %q: nothing expands its words", got)
	}
	if got := *copies[0]; !reflect.DeepEqual(got, dockerfile.Copy{From: dockerfile.Source{IsStage: true}, Paths: []string{"out/a", "out/b"}, To: "/srv/app/sub/bin/", Owner: "1:2", Mode: "755"}) {
		t.Errorf("COPY is %+v", got)
	}
	if got := *copies[1]; got.To != "/srv/app/sub/" || !got.Unpack {
		t.Errorf("ADD is %+v", got)
	}
	if got := f.Needed(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("stages %v are needed", got)
	}
}

func TestHereDocumentsAndMounts(t *testing.T) {
	_, _, list := steps(t, `FROM scratch
RUN <<EOF
echo one
echo two
EOF
RUN <<EOF
#!/usr/bin/python3
print(1)
EOF
RUN cat <<A - <<B
a
A
b
B
COPY <<EOF /etc/motd
hi
EOF
RUN --mount=type=cache,target=/root/.cache --mount=type=secret,id=token,required --mount=type=secret,id=K,env=KEY --mount=type=tmpfs,target=/scratch,size=1m --mount=target=/src --network=none make
`, dockerfile.Options{})
	if got := list[0].Run.Args; !slices.Equal(got, []string{"/bin/sh", "-c", "echo one\necho two\n"}) {
		t.Errorf("a document for the shell is %q", got)
	}
	if got := list[1].Run; len(got.Files) != 1 || got.Args[0] != got.Files[0].Name || !strings.HasPrefix(got.Files[0].Data, "#!/usr/bin/python3") {
		t.Errorf("a program is %+v", got)
	}
	if got := list[2].Run.Args[2]; got != "cat <<A - <<B\na\nA\nb\nB" {
		t.Errorf("documents of a command are %q", got)
	}
	if got := list[3].Copy; len(got.Inline) != 1 || got.Inline[0].Data != "hi\n" || got.To != "/etc/motd" {
		t.Errorf("a file is %+v", got)
	}
	r := list[4].Run
	want := dockerfile.Run{
		Args: []string{"/bin/sh", "-c", "make"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/srv", Offline: true,
		Caches:  []dockerfile.CacheMount{{ID: "/root/.cache", Target: "/root/.cache"}},
		Secrets: []dockerfile.SecretMount{{ID: "token", Target: "/run/secrets/token", Required: true}, {ID: "K", Env: "KEY"}},
		Tmpfs:   []dockerfile.TmpfsMount{{Target: "/scratch", Size: 1 << 20}}, Binds: []dockerfile.BindMount{{Target: "/src"}},
	}
	if !reflect.DeepEqual(*r, want) {
		t.Errorf("mounts are\n%+v, want\n%+v", *r, want)
	}
}

func TestWhatCannotBeBuiltIsRefusedBeforeAnythingIs(t *testing.T) {
	other := map[string]string{"amd64": "arm64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	for name, c := range map[string]struct {
		text, says string
		kind       error
	}{
		"no FROM":             {"RUN true", "line 1", paddock.Invalid},
		"no stage":            {"ARG a", "no FROM", paddock.Invalid},
		"nothing":             {"", "no", paddock.Invalid},
		"a word that is none": {"FROM a\nFETCH b", "line 2", paddock.Invalid},
		"the host's network":  {"FROM a\nRUN --network=host true", "line 2: RUN --network=host", paddock.Unsupported},
		"no sandbox":          {"FROM a\nRUN --security=insecure true", "line 2", paddock.Unsupported},
		"a key agent":         {"FROM a\nRUN --mount=type=ssh true", "type=ssh", paddock.Unsupported},
		"a download":          {"FROM a\nADD https://example.com/x /", "line 2: ADD https://example.com/x", paddock.Unsupported},
		"for others":          {"FROM a\nONBUILD RUN true", "line 2: ONBUILD", paddock.Unsupported},
		"another machine":     {"FROM --platform=linux/" + other + " a", "line 1: FROM --platform", paddock.Unsupported},
		"a base that is none": {"ARG B\nFROM $B", "--build-arg", paddock.Invalid},
		"a later stage":       {"FROM a\nCOPY --from=1 x y\nFROM b", "line 2: --from=1", paddock.Invalid},
		"NUL":                 {"FROM a\x00", "NUL", paddock.Invalid},
		"too long":            {"FROM a\n" + strings.Repeat("#", dockerfile.MaxText), "bytes", paddock.Invalid},
		"too many":            {"FROM a\n" + strings.Repeat("RUN x\n", 2001), "instructions", paddock.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := dockerfile.Parse([]byte(c.text), dockerfile.Options{})
			for err == nil {
				var step *dockerfile.Step
				s := f.Begin(len(f.Stages)-1, image.Config{})
				if step, err = s.Step(); step == nil && err == nil {
					t.Fatal("it was read")
				}
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v (want %v, with %q)", err, c.kind, c.says)
			}
		})
	}
	if _, err := dockerfile.Parse([]byte("FROM a AS one\nFROM b"), dockerfile.Options{Target: "two"}); !errors.Is(err, paddock.NotFound) || !strings.Contains(err.Error(), "one, 1") {
		t.Errorf("a stage that is none: %v", err)
	}
	f, err := dockerfile.Parse([]byte("FROM a AS one\nFROM b\nHEALTHCHECK CMD x\n"), dockerfile.Options{Target: "one"})
	if err != nil || len(f.Stages) != 1 || len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], "line 3: HEALTHCHECK") {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestVariablesDoNotGrowWithoutBound(t *testing.T) {
	double := "=" + strings.Repeat("$A", 8) + "\n"
	grow := "ENV A=" + strings.Repeat("a", 1000) + "\n" + strings.Repeat("ENV A"+double, 20)
	for name, text := range map[string]string{
		"of one":            "FROM a\n" + grow,
		"of many":           "FROM a\n" + strings.Repeat("ENV A="+strings.Repeat("a", 1000)+"\n", 1) + strings.Repeat("ENV A"+double, 3) + many("ENV", 20),
		"of arguments":      "FROM a\nENV A=" + strings.Repeat("a", 200_000) + "\n" + many("ARG", 20),
		"of labels":         "FROM a\nENV A=" + strings.Repeat("a", 200_000) + "\n" + many("LABEL", 20),
		"in an instruction": "FROM a\nENV A=" + strings.Repeat("a", 200_000) + "\nLABEL " + strings.ReplaceAll(many("", 20), "\n", " ") + "\n",
		"before FROM":       "ARG A=" + strings.Repeat("a", 200_000) + "\n" + many("ARG", 20) + "FROM a\n",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := dockerfile.Parse([]byte(text), dockerfile.Options{})
			if err == nil {
				s := f.Begin(0, image.Config{})
				for step := new(dockerfile.Step); err == nil && step != nil; {
					step, err = s.Step()
				}
			}
			if !errors.Is(err, paddock.Exhausted) && !errors.Is(err, paddock.Invalid) {
				t.Errorf("it was read: %v", err)
			}
		})
	}
}

// many gives so many names the value of A.
func many(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s B%d=$A\n", word, i)
	}
	return b.String()
}

func FuzzADockerfile(f *testing.F) {
	f.Add("FROM a\nRUN x\nCOPY --from=b y z\n")
	f.Add("ARG A=${B:-c}\nFROM $A AS x\nRUN <<E\nE\nFROM x\nENV A=$A$A\nRUN --mount=type=cache,target=$A true\n")
	f.Add("FROM a\nENV A=aaaaaaaaaaaaaaaa\nENV A=$A$A$A$A$A$A$A$A\nENV A=$A$A$A$A$A$A$A$A\nENV A=$A$A$A$A$A$A$A$A\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := dockerfile.Parse([]byte(text), dockerfile.Options{Args: map[string]string{"A": "x"}})
		if err != nil {
			return
		}
		for _, n := range file.Needed() {
			s := file.Begin(n, image.Config{})
			for {
				step, err := s.Step()
				if step == nil || err != nil {
					break
				}
				if c := step.Copy; c != nil && (!strings.HasPrefix(c.To, "/") || slices.ContainsFunc(c.Paths, func(p string) bool {
					return strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../")
				})) {
					t.Errorf("COPY leads out: %+v", c)
				}
			}
		}
	})
}
