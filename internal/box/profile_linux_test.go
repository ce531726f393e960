package box

import (
	"os/exec"
	"testing"
)

func TestALoginShellKeepsThePathBeforeThatOfTheProfile(t *testing.T) {
	const debian = "PATH=/usr/local/bin:/usr/bin:/bin\nexport PATH\n"
	for _, row := range []struct{ path, profile, want string }{
		{"/home/x/.local/bin:/pyenv/bin:/usr/bin:/bin", debian, "/home/x/.local/bin:/pyenv/bin:/usr/bin:/bin:/usr/local/bin"},
		{"/a b:/usr/bin", "PATH=/snap/bin:$PATH", "/a b:/usr/bin:/snap/bin"},
		{"/usr/bin:/bin", "PATH=", "/usr/bin:/bin"},
		{"/usr/bin:/bin", "PATH=:/x::/y*:", "/usr/bin:/bin:/x:/y*"},
		{"/usr/bin:/bin", "unset PATH", "/usr/bin:/bin"},
		{"", debian, "/usr/local/bin:/usr/bin:/bin"},
	} {
		for _, shell := range []string{"sh", "bash"} {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Logf("no %s here", shell)
				continue
			}
			cmd := exec.CommandContext(t.Context(), program, "-eu", "-c", keepingPath(row.profile)+`printf '%s %s' "$PATH" "${paddock_path-}${paddock_rest-}${paddock_dir-}"`)
			cmd.Env = []string{"PATH=" + row.path}
			out, err := cmd.CombinedOutput()
			if got := string(out); err != nil || got != row.want+" " {
				t.Errorf("%s, %q, %q: %q, %v; want %q", shell, row.path, row.profile, got, err, row.want)
			}
		}
	}
}
