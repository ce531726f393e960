//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// gitKeys are configurations that run a program, read a file, or lead git elsewhere.
func gitKeys() []string {
	return []string{
		"[core]\n\tfsmonitor = x\n", "[core]\n\thooksPath = h\n", "[core]\n\tsshCommand = x\n", "[core]\n\tpager = x\n", "[core]\n\teditor = x\n", "[core]\n\taskPass = x\n", "[core]\n\tgitProxy = x\n",
		"[core]\n\tattributesFile = x\n", "[core]\n\texcludesFile = x\n", "[core]\n\talternateRefsCommand = x\n", "[core]\n\tworktree = ../..\n",
		"[alias]\n\tst = !x\n", "[filter \"x\"]\n\tsmudge = x\n", "[filter \"x\"]\n\tprocess = x\n", "[diff]\n\texternal = x\n", "[diff \"x\"]\n\tcommand = x\n", "[diff \"x\"]\n\ttextconv = x\n", "[merge \"x\"]\n\tdriver = x\n",
		"[include]\n\tpath = x\n", "[includeIf \"gitdir:/\"]\n\tpath = x\n", "[includeIf \"hasconfig:remote.*.url:https://**\"]\n\tpath = x\n", "[credential]\n\thelper = !x\n", "[gpg]\n\tprogram = x\n", "[gpg \"ssh\"]\n\tdefaultKeyCommand = x\n",
		"[url \"ext::x \"]\n\tinsteadOf = https://\n", "[url \"https://x\"]\n\tpushInsteadOf = https://\n", "[protocol \"ext\"]\n\tallow = always\n", "[http]\n\tproxy = x\n", "[http]\n\tsslVerify = false\n", "[http]\n\tcookieFile = x\n",
		"[remote \"x\"]\n\turl = ext::sh -c x\n", "[remote \"x\"]\n\turl = ssh://-oProxyCommand=x/y\n", "[remote \"x\"]\n\tuploadpack = x\n", "[remote \"x\"]\n\treceivepack = x\n", "[remote \"x\"]\n\tvcs = x\n", "[remote \"x\"]\n\tproxy = x\n",
		"[remote \"x\"]\n\turl = /x\n\tpromisor = true\n[extensions]\n\tpartialClone = x\n", "[submodule \"x\"]\n\tupdate = !x\n", "[submodule \"../x\"]\n\turl = /x\n", "[submodule]\n\trecurse = true\n", "[fetch]\n\trecurseSubmodules = true\n",
		"[interactive]\n\tdiffFilter = x\n", "[sequence]\n\teditor = x\n", "[uploadpack]\n\tpackObjectsHook = x\n", "[pager]\n\tlog = x\n", "[trailer \"x\"]\n\tcommand = x\n", "[gc]\n\trecentObjectsHook = x\n", "[hook \"x\"]\n\tcommand = x\n\tevent = post-checkout\n",
		"[difftool \"x\"]\n\tcmd = x\n", "[mergetool \"x\"]\n\tcmd = x\n", "[browser \"x\"]\n\tcmd = x\n", "[man \"x\"]\n\tcmd = x\n", "[tar \"x\"]\n\tcommand = x\n", "[lfs \"customtransfer.x\"]\n\tpath = x\n", "[init]\n\ttemplateDir = x\n", "[commit]\n\ttemplate = x\n",
		"[blame]\n\tignoreRevsFile = x\n", "[receive]\n\tdenyCurrentBranch = updateInstead\n", "[push]\n\tautoSetupRemote = true\n", "[remote]\n\tpushDefault = x\n",
		// Text that parsers could read in different ways.
		"[core] fsmonitor = x\n", "[CORE]\n\tFSMONITOR = x\n", "[core]\n\tfsmonitor\n", "[core]\n\tbare = \\\n false\n\tfsmonitor = x\n", "# \\\n[core]\n\tfsmonitor = x\n", "[core]\r\n\tfsmonitor = x\r\n", "\ufeff[core]\n\tfsmonitor = x\n",
		"[core]\n\tbare = false\x00\n\tfsmonitor = x\n", "[core \"\"]\n\tfsmonitor = x\n", "[include.path]\n\tpath = x\n", "[filter.x]\n\tclean = x\n", "[user]\n\tname = \"a\\n[core]\\n\\tfsmonitor = x\"\n", "[user \"]\\n[core]\"]\n\tname = x\n[core]\n\tfsmonitor = x\n",
		"[user]\n\tname = a\x0b[core]\n\tfsmonitor = x\n", "[core]\n\tfsmonitor\t=\tx\n", "[core]\n\tfsmonitor=x",
	}
}

// gitKeyProbes are ways of C02 to give a repository that is made inside a configuration that runs something.
func gitKeyProbes() []probe {
	const head = "[core]\n\tbare = false\n"
	var ps []probe
	repository := func(b *protocol.Brief, name string) string {
		dir := filepath.Join(b.Work, "keys", name, ".git")
		_ = os.MkdirAll(dir, 0o755)
		return dir
	}
	put := func(dir, text string) error {
		if err := os.WriteFile(dir+"/config.lock", []byte(text), 0o644); err != nil {
			return err
		}
		return errors.Join(unix.Rename(dir+"/config.lock", dir+"/config"), ignored(os.Remove(dir+"/config.lock")))
	}
	for i, text := range gitKeys() {
		ps = append(ps, probe{fmt.Sprintf("content %02d: %.40q", i, strings.ReplaceAll(text, "\n\t", " ")), func(b *protocol.Brief) protocol.Try {
			dir := repository(b, fmt.Sprint(i))
			if err := put(dir, text); err != nil {
				return refused(err)
			}
			return reached("a new repository has %q", text)
		}})
	}
	const good, bad = head + "\tfilemode = true\n", head + "\tpager = x      \n"
	has := func(b *protocol.Brief, dir string, err error) protocol.Try {
		data, _ := os.ReadFile(dir + "/config")
		switch {
		case strings.Contains(string(data), "pager") && b.Kernel:
			return inside("the configuration has it, as this kernel shows it")
		case strings.Contains(string(data), "pager"):
			return reached("the configuration was changed after it was judged")
		case err != nil:
			return refused(err)
		}
		return refused(unix.EACCES) // what was written is nowhere
	}
	return append(ps,
		probe{"race of the content", func(b *protocol.Brief) protocol.Try {
			dir := repository(b, "race")
			var last error
			for range 300 {
				fd, err := unix.Open(dir+"/config.lock", unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o644)
				if err != nil {
					return refused(err)
				}
				_, _ = unix.Pwrite(fd, []byte(good), 0)
				f := newFlip(func(i int) {
					text := good
					if i%2 == 0 {
						text = bad
					}
					_, _ = unix.Pwrite(fd, []byte(text), 0)
				})
				if err := unix.Rename(dir+"/config.lock", dir+"/config"); err != nil {
					last = err
				}
				f.end()
				unix.Close(fd)
				if t := has(b, dir, last); t.Outcome == protocol.Reached {
					return t
				}
			}
			return has(b, dir, last)
		}},
		probe{"content: a descriptor that was kept", func(b *protocol.Brief) protocol.Try {
			dir := repository(b, "kept")
			fd, err := unix.Open(dir+"/config.lock", unix.O_RDWR|unix.O_CREAT, 0o644)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			_, _ = unix.Pwrite(fd, []byte(good), 0)
			err = unix.Rename(dir+"/config.lock", dir+"/config")
			_, _ = unix.Pwrite(fd, []byte(bad), 0)
			return has(b, dir, err)
		}},
		probe{"content: a mapping that was kept", func(b *protocol.Brief) protocol.Try {
			dir := repository(b, "mapped")
			fd, err := unix.Open(dir+"/config.lock", unix.O_RDWR|unix.O_CREAT, 0o644)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			_, _ = unix.Pwrite(fd, []byte(good), 0)
			mem, err := unix.Mmap(fd, 0, len(bad), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return refused(err)
			}
			defer func() { _ = unix.Munmap(mem) }()
			err = unix.Rename(dir+"/config.lock", dir+"/config")
			copy(mem, bad)
			return has(b, dir, errors.Join(err, ignored(unix.Msync(mem, unix.MS_SYNC))))
		}},
		probe{"content: another name of the file", func(b *protocol.Brief) protocol.Try {
			dir := repository(b, "linked")
			if err := os.WriteFile(dir+"/config.lock", []byte(good), 0o644); err != nil {
				return refused(err)
			}
			if err := unix.Link(dir+"/config.lock", dir+"/other"); err != nil {
				return refused(err)
			}
			err := unix.Rename(dir+"/config.lock", dir+"/config")
			_ = os.WriteFile(dir+"/other", []byte(bad), 0o644)
			return has(b, dir, err)
		}},
	)
}

// ignored is for an error that changes nothing.
func ignored(error) error { return nil }
