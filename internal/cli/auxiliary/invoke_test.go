package auxiliary

import (
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
)

// invoke gives an invocation that has the commands of this package.
func invoke(dir string, env map[string]string, tiers []cli.Tier, args ...string) *clitest.Invocation {
	v := clitest.Invoke(dir, env, tiers, args...)
	v.App.Commands = Commands
	return v
}
