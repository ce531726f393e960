package archtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// frontModules are the foreign modules that the embedded front may initialise. Each
// costs every start of paddock: what is not needed to make a jail, or to speak to a
// server, belongs to a program behind it.
func frontModules() map[string]string {
	return map[string]string{
		"connectrpc.com/connect":                    "the connection to the guest",
		"google.golang.org/protobuf":                "as above",
		"github.com/spf13/cobra":                    "the command line",
		"github.com/spf13/pflag":                    "as above",
		"go.yaml.in/yaml/v3":                        "policy files",
		"golang.org/x/sys":                          "system calls",
		"golang.org/x/term":                         "terminals",
		"github.com/landlock-lsm/go-landlock":       "numbers of system calls",
		"kernel.org/pub/linux/libs/security/libcap": "giving up capabilities",
		"github.com/erofs/go-erofs":                 "the accounts of an image; it initialises nothing but errors",
		"github.com/containerd/cgroups/v3":          "control groups",
		"github.com/moby/sys/userns":                "as above",
		"github.com/godbus/dbus/v5":                 "a login session gets its control group from systemd, before there is any sandbox; its init takes 5 µs",
		"github.com/creack/pty":                     "internal/box knows the guest's types, and these open terminals",
		"github.com/fsnotify/fsnotify":              "likewise, to watch files",
		"github.com/hashicorp/yamux":                "likewise, for connections of machines",
		"github.com/klauspost/compress":             "internal/driver/microvm reads kernels",
		"github.com/ulikunitz/xz":                   "as above",
		"github.com/tailscale/hujson":               "settings of agents with comments, which paddock hooks edits; its init takes a few µs",
		"golang.org/x/time":                         "the pace of requests to a key agent; it has no init of its own",
	}
}

// The test of one command takes what make build has built, so that it compiles no kernel, no server and no tier.
func TestTheTestOfOneCommandCompilesLittle(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-test", "-tags=embedguest", "./cmd/paddock")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	if len(all) < 100 || len(all) > 450 {
		t.Errorf("it compiles %d packages", len(all))
	}
	for _, path := range all {
		for _, never := range []string{"gvisor.dev/gvisor", "github.com/aws/aws-sdk-go-v2", "github.com/jackc/pgx/v5", module + "/internal/cli/serve", module + "/internal/sim/command"} {
			if within(path, never) {
				t.Errorf("it compiles %s", path)
			}
		}
	}
}

func TestTheFrontInitialisesWhatItIsAllowed(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags=embedguest", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/paddock")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		if within(path, module) {
			for _, never := range []string{
				"/internal/cli/serve", "/internal/cli/auxiliary", "/internal/store", "/internal/server", "/internal/dialect", "/internal/image/registry", "/internal/sim/command",
				"/internal/sim/shell", "/internal/driver/sim/child", "/internal/driver/gvisor/supervisor", "/internal/driver/microvm/supervisor", "/internal/egress/netstack", "/internal/egress/gateway",
			} {
				if within(path, module+never) && path != module+"/internal/server/api" {
					t.Errorf("the front initialises %s, which only a subprogram needs", path)
				}
			}
			continue
		}
		found := false
		for m := range frontModules() {
			if within(path, m) {
				found, used[m] = true, true
			}
		}
		if !found {
			t.Errorf("the front initialises %s: put what needs it into a subprogram, or say in frontModules why every start of paddock is to pay for it", path)
		}
	}
	for m := range frontModules() {
		if !used[m] {
			t.Errorf("the front may initialise %s, and does not: take it out of frontModules", m)
		}
	}
}
