package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A spell is an attack as a shell script, for a tier that executes nothing else. Its exit
// status says whether it was refused.
type spell struct{ name, script string }

// scripted attacks a sandbox whose only programs are a shell and its tools: first with the
// attacker itself, which must not be executed, and then with scripts.
func (x *trial) scripted(ctx context.Context, sb paddock.Sandbox, args ...string) (protocol.Report, error) {
	report := protocol.Report{Case: args[0]}
	_, err := sb.Start(ctx, paddock.Cmd{Args: append([]string{x.w.brief.Self}, args...)})
	var start *paddock.StartError
	switch {
	case err == nil:
		report.Tries = append(report.Tries, reached("execute the attacker", "a program of the host was started"))
	case errors.As(err, &start):
		report.Tries = append(report.Tries, protocol.Try{Name: "execute the attacker", Outcome: protocol.Denied, Errno: "ENOEXEC", Detail: err.Error()})
	default:
		return report, fmt.Errorf("start attacker: %w", err)
	}
	if x.c.way != nil {
		if err := x.online(ctx, sb, scripts(args[0])); err != nil {
			return report, err
		}
	}
	ways := append(anywhere(), scripts(args[0])...)
	if x.rounds++; x.rounds > 1 {
		// For a case in several forms, try the tools only in the first.
		ways = slices.DeleteFunc(scripts(args[0]), func(s spell) bool { return slices.Contains(toolScripts(args[0]), s) })
	}
	for _, way := range ways {
		try, err := x.script(ctx, sb, way)
		if err != nil {
			return report, fmt.Errorf("script %q: %w", way.name, err)
		}
		switch allowed := try.Outcome == protocol.Inside; {
		case x.c.ID == "N01" && !slices.Contains(anywhere(), way):
			try.Outcome = map[bool]string{true: protocol.Reached, false: "broken"}[allowed]
		case x.w.brief.Phase == killedPhase && allowed:
			try.Outcome, try.Detail = protocol.Reached, "it worked without a gateway"
		}
		report.Tries = append(report.Tries, try)
	}
	return report, nil
}

// scriptTime bounds one script, because some wait forever.
const scriptTime = 2 * time.Second

// endless bounds the scripts of rows about endless work.
const endless = 700 * time.Millisecond

func (x *trial) scriptTime() time.Duration {
	switch {
	case x.bound > 0:
		return x.bound
	case x.c.ID == "P22", x.c.ID == "A17":
		return endless
	case x.c.way != nil:
		return 15 * time.Second // they end by themselves
	}
	return scriptTime
}

// noCalls is why a row about system calls has no cell of its own. The tests of
// internal/driver/sim/parent try the process in which scripts run.
const noCalls = "a script makes no system calls, and no program that would make them is executed (tried); what the process around it could call is tried beside its code"

// script tries one script. The caller has the same user inside: root of a simulated
// computer may do everything there.
func (x *trial) script(ctx context.Context, sb paddock.Sandbox, way spell) (protocol.Try, error) {
	var out bytes.Buffer
	b := x.w.brief
	env := map[string]string{
		"MARK": b.Marker, "H": b.Home, "W": b.Work, "OTHER": b.Other, "STATE": b.State, "SELF": b.Self, "SECRET": b.Secret, "PLACE": b.Place,
		"RD": b.DenyReadDir, "RF": b.DenyReadFile, "RL": b.DenyReadLate, "WD": b.DenyWriteDir, "WF": b.DenyWrite, "DEEP": b.DenyDeep, "HARD": b.Hard, "SUID": b.SUID,
		"PREPARED": b.Prepared, "TARGET": b.Target, "PID": strconv.Itoa(b.Canary.PID), "SOCK": b.Canary.Stream, "LOG": b.Canary.Datagram,
		"ALIVE": b.Alive, "PHASE": b.Phase, "GATEWAY": strconv.Itoa(b.Gateway),
		"OWN": strings.Join(b.Own, " "), "FDS": strings.Trim(fmt.Sprint(b.FDs), "[]"), "MQ": b.Canary.MQueue,
	}
	cmd := paddock.Cmd{
		Args: []string{"bash", "-c", way.script}, Env: env, Timeout: x.scriptTime(), Output: paddock.Output{Stdout: &out, Stderr: &out}, Terminal: x.terminal,
	}
	if x.caller == "root" {
		cmd.User = "root"
	}
	p, err := sb.Start(ctx, cmd)
	if errors.Is(err, paddock.Exhausted) {
		return protocol.Try{Name: way.name, Outcome: protocol.Denied, Errno: "EAGAIN", Detail: err.Error()}, nil
	}
	if err != nil {
		return protocol.Try{}, err
	}
	exit, err := p.Wait(ctx)
	p.Release()
	x.out = append(x.out, out.Bytes()...)
	if err != nil {
		return protocol.Try{}, err
	}
	try := protocol.Try{Name: way.name, Outcome: protocol.Denied, Errno: words(out.String()), Detail: tail(out.Bytes())}
	switch {
	case exit.Cause == paddock.TimedOut || exit.Cause == paddock.OutOfBudget || exit.Cause == paddock.OutOfMemory:
		try.Errno, try.Detail = string(exit.Cause), exit.Reason
	case exit.Code == 0:
		try.Outcome, try.Errno = protocol.Inside, "" // the host checks
	}
	return try, nil
}

// words returns the error numbers in messages of tools.
func words(out string) string {
	var list []string
	for _, e := range []struct{ text, name string }{
		{"Permission denied", "EACCES"}, {"No such file or directory", "ENOENT"}, {"Read-only file system", "EROFS"},
		{"Operation not permitted", "EPERM"}, {"No such process", "ESRCH"}, {"Bad file descriptor", "EBADF"}, {"No space left", "ENOSPC"},
		{"Too many levels", "ELOOP"}, {"Resource temporarily unavailable", "EAGAIN"}, {"cannot execute binary file", "ENOEXEC"},
		{"Exec format error", "ENOEXEC"}, {"command not found", "unknown"}, {"Device or resource busy", "EBUSY"}, {"Not a directory", "ENOTDIR"},
		{"File too large", "EFBIG"}, {"No such device or address", "ENXIO"}, {"Invalid cross-device link", "EXDEV"}, {"Invalid argument", "EINVAL"},
		{"Connection refused", "ECONNREFUSED"}, {"Operation not supported", "ENOTSUP"}, {"File name too long", "ENAMETOOLONG"}, {"Too many open files", "EMFILE"},
		{"out of memory", "ENOMEM"},
	} {
		if strings.Contains(out, e.text) && !strings.Contains(strings.Join(list, " "), e.name) {
			list = append(list, e.name)
		}
	}
	return strings.Join(list, " ")
}

// anywhere returns ways of running something other than a script, tried in every case.
func anywhere() []spell {
	return []spell{
		{"execute a copy", `cp "$SELF" /tmp/a && chmod 755 /tmp/a && /tmp/a`},
		{"interpret it", `bash "$SELF"`},
		{"become it", `exec "$SELF"`},
		{"source it", `. "$SELF"`},
	}
}

// scripts returns the scripts of a case. A case without scripts is about system calls,
// which no tool makes for a script: its answer is that nothing else runs.
func scripts(id string) []spell {
	list := toolScripts(id)
	switch id[0] {
	case 'A':
		return append(fileScripts(id), list...)
	case 'C':
		return append(trustScripts(id), list...)
	case 'N':
		return networkScripts(id)
	}
	return append(processScripts(id), list...)
}

func fileScripts(id string) []spell {
	switch id {
	case "A01":
		return each("write to ", `echo x > "%s/$MARK-s"`, "$H", "/etc", "/var/tmp", "/run", "/usr/bin", "$PLACE", "$STATE", "/root", "/")
	case "A02":
		return each("append to ", `echo x >> "%s"`, "$H/.bashrc", "$H/.profile", "$H/.gitconfig", "$H/.ssh/authorized_keys")
	case "A03":
		return each("through ", `echo x >> "$W/%s"`, "link-bashrc", "link-up", "link-home/.bashrc", "link-etc/$MARK-s", "link-root/$MARK-s", "link-dangling")
	case "A04":
		return []spell{{"plant links", `cd "$W" && ln -s "$H/outside.txt" report.txt; ln -s "$H" outdir; ln -s .. up; ln -s /etc etc; ln -s "$SECRET" result.key; mkdir tidy && ln -s "$H" tidy/h`}}
	case "A06":
		return []spell{
			{"truncate", `: > "$WF"`}, {"append", `echo x >> "$WF"`}, {"remove", `rm -f "$WF"`}, {"move away", `mv "$WF" "$W/moved"`}, {"move over", `echo x > "$W/n" && mv "$W/n" "$WF"`},
			{"link", `ln "$WF" "$W/hard" && echo x >> "$W/hard"`}, {"mode", `chmod 777 "$WF"`}, {"make in it", `echo x > "$WD/new"`}, {"remove in it", `rm "$WD/file.txt"`},
			{"move it", `mv "$WD" "$W/d"`}, {"remove it", `rm -r "$WD"`}, {"slashes", `echo x > "$W/.//tree/../locked.txt"`}, {"in place", `sed -i s/l/x/ "$WF"`},
			{"by a link", `ln -s "$WF" "$W/s" && echo x > "$W/s"`}, {"tee", `echo x | tee -a "$WF"`}, {"tar", `cd /tmp && mkdir -p t/locked && echo x > t/locked/file.txt && tar cf a.tar -C t locked && tar xf a.tar -C "$W"`},
		}
	case "A07", "C10":
		return []spell{
			{"move what is above", `mv "$W/tree" "$W/t2"`}, {"move the parent", `mv "$W/tree/inner" "$W/tree/i2"`}, {"make anew", `rm -r "$W/tree" && mkdir -p "$DEEP" && echo x > "$DEEP/file.txt"`},
			{"move the workspace", `mv "$W" "$W-2"`}, {"link in its place", `mv "$W/tree" "$W/t3" && ln -s /tmp "$W/tree"`},
		}
	case "A08", "A05", "A10", "A22":
		return slices.Concat(
			each("read ", `cat "%s"`, "$RF", "$RD/secret.txt", "$RL", "$SECRET", "$H/.aws/credentials", "/proc/self/root$RF", "/proc/1/root$RF", "/proc/self/cwd/token.txt", "$W/./private/../token.txt", "$W/link-home/project/token.txt"),
			[]spell{
				{"list", `ls -la "$RD"`}, {"search", `grep -r canary "$RD" "$RF"`}, {"copy", `cp "$RF" /tmp/c && cat /tmp/c`}, {"redirect", `x=$(< "$RF") && echo "$x"`}, {"mapfile", `mapfile x < "$RF" && echo "${x[@]}"`},
				{"source", `. "$RF" 2>&1 | grep canary`}, {"archive", `tar cf - "$RD" "$RF" | strings | grep canary`}, {"link", `ln -s "$RF" "$W/l" && cat "$W/l"`}, {"hard link", `ln "$RF" "$W/l2" && cat "$W/l2"`}, {"sort", `sort "$RF"`}, {"compare", `diff /dev/null "$RF" | grep canary`},
			},
		)
	case "A09":
		return []spell{
			{"move", `mv "$RF" "$W/r" && cat "$W/r"`}, {"move the directory", `mv "$RD" "$W/p" && cat "$W/p/secret.txt"`}, {"link", `ln "$RF" "$W/r2" && cat "$W/r2"`}, {"exchange", `mv -T "$RD" "$WD" && cat "$WD/secret.txt"`},
			{"move above", `mv "$W" /tmp/w && cat /tmp/w/token.txt`},
		}
	case "A11":
		return []spell{{"append", `echo x >> "$HARD"`}}
	case "A12", "A13":
		return slices.Concat(each("write to ", `echo x > "%s/$MARK-s"`, "/dev/shm", "/tmp", "/var/tmp"), each("read from ", `cat "%s/$MARK-canary"`, "/dev/shm", "/tmp", "/var/tmp"))
	case "A14", "A26":
		return []spell{{"set-id mode", `echo x > "$W/s" && chmod 6755 "$W/s"`}, {"install", `install -m 4755 /bin/cat "$W/i"`}, {"change a set-id file", `echo x >> "$PREPARED"`}, {"change mode of one", `chmod 4777 "$W/main.py"`}}
	case "A27":
		return []spell{{"chmod", `chmod 0 "$W" && chmod 755 "$W"`}, {"chmod from inside", `cd "$W" && chmod 777 .`}, {"chmod from below", `cd "$W" && mkdir top && chmod 0 top/.. && chmod 755 "$W"`}}
	case "A15":
		return []spell{
			{"make a block device", `mknod "$W/b" b 8 0 && head -c 512 "$W/b"`}, {"make a memory device", `mknod /tmp/m c 1 1 && head -c 512 /tmp/m`}, {"open disks", `head -c 512 /dev/sda /dev/vda /dev/mem /dev/kmsg /dev/port`}, {"list devices", `ls -l /dev`},
			{"device of the overlay", `echo x > "$W/z" && mv /dev/null "$W/z2"`},
		}
	case "A16":
		return []spell{{"plant", `cd "$W" && mkfifo fifo.txt; ln -s /dev/zero endless.txt; ln -s /dev/tty tty.txt; ln -s loop.txt loop.txt; ln -s /proc/self/fd/0 fd.txt; mknod socket.txt p; true`}}
	case "A17":
		return []spell{
			{"bytes in /tmp", `yes > /tmp/f`}, {"bytes in the workspace", `yes > "$W/f"`}, {"sparse", `truncate -s 100G /tmp/s`}, {"inodes", `cd /tmp && for ((i = 0; ; i++)); do > i$i || exit 1; done`}, {"copies", `cd /tmp && for ((i = 0; ; i++)); do cp -r "$PLACE/bin" c$i || exit 1; done`},
		}
	case "A21":
		return each("write ", `mkdir -p "$(dirname "$W/%[1]s")"; echo x > "$W/%[1]s"`, ".GIT/config", ".Git/hooks/pre-commit", ".git /config", "LOCKED.TXT")
	case "A24", "A25":
		return slices.Concat(each("write to ", `echo x >> "%s"`, "$STATE/x", "$SELF", "$PLACE/bin/x"), []spell{{"own files", `for f in $OWN; do echo x >> "$f" || exit 1; done`}, {"a link where a mount comes from", `rm -rf "$W/scripts" && ln -s "$H" "$W/scripts"`}})
	case "A19", "A20":
		return []spell{{"mount", `mount --bind / /tmp`}, {"unmount", `umount "$W"`}, {"unshare", `unshare -Urm true`}, {"mount table", `cat /proc/self/mountinfo`}}
	}
	return nil
}

func trustScripts(id string) []spell {
	switch id {
	case "C01", "C03", "C05", "C11":
		return each("write ", `mkdir -p "$(dirname "$W/%[1]s")"; echo x > "$W/%[1]s"`, ".git/hooks/post-checkout", ".git/hooks/new", "nested/.git/hooks/pre-commit", "a/b/c/d/.git/hooks/pre-commit", ".git/modules/sub/hooks/x", ".git/info/attributes", ".git/worktrees/wt/commondir", "wt/.git")
	case "C02":
		return each("write ", `printf '[core]\n\tfsmonitor = x\n' >> "$W/%s"`, ".git/config", "nested/.git/config", ".git/config.worktree")
	case "C04":
		return []spell{{"make a repository", `mkdir -p "$W/new/.git/hooks" && echo x > "$W/new/.git/hooks/pre-commit"`}, {"git", `cd "$W" && git init new2`}, {"bare repository", `mkdir -p "$W/bare/objects" "$W/bare/refs" && echo x > "$W/bare/config"`}}
	case "C06", "C07":
		return each("make ", `mkdir -p "$(dirname "$W/%[1]s")" && echo x > "$W/%[1]s"`, ".mcp.json", ".bashrc", ".vscode/tasks.json", ".claude/settings.json", ".codex/config", ".agents/x", ".aws/credentials", ".envrc")
	case "C08", "C09":
		return slices.Concat(each("change ", `echo x >> "$W/%s"`, "package.json", "Makefile", "scripts/build.sh", "main.py", "venv/bin/python", "node_modules/.bin/tool"), each("change the host's ", `echo x >> "%s"`, "$H/.local/bin/tool", "/usr/bin/env", "$SELF"))
	}
	return nil
}

func processScripts(id string) []spell {
	switch id {
	case "P01", "P02", "P36":
		return []spell{
			{"signal", `kill -9 "$PID"`}, {"signal all", `kill -9 -1`}, {"the first", `kill -9 1`}, {"read its environment", `cat /proc/$PID/environ`}, {"its memory", `cat /proc/$PID/mem`}, {"its descriptors", `ls -l /proc/$PID/fd`},
			{"by name", `pkill -9 attacker`}, {"list", `ps -ef`}, {"the parent's", `tr '\0' '\n' < /proc/$PPID/environ`},
		}
	case "P03", "P04", "P05", "P31", "P32", "P37":
		return []spell{
			{"open the socket", `exec 3<> "$SOCK" && echo x >&3`}, {"write to the log", `echo x > "$LOG"`}, {"network file", `exec 3<> /dev/tcp/127.0.0.1/22`}, {"datagrams", `echo x > /dev/udp/127.0.0.1/53`}, {"netcat", `nc -U "$SOCK"`},
			{"curl", `curl --unix-socket "$SOCK" http://x/`}, {"the shown one", `exec 3<> "$TARGET"`}, {"names", `cat /proc/net/unix`},
		}
	case "P06", "P07":
		return []spell{{"network file", `exec 3<> /dev/tcp/localhost/80`}, {"curl", `curl -s http://127.0.0.1/`}, {"ping", `ping -c1 127.0.0.1`}, {"interfaces", `cat /proc/net/dev`}}
	case "P14", "P15":
		return []spell{{"write to it", `echo x > /dev/tty`}, {"read it", `head -c1 < /dev/tty`}, {"pseudo terminals", `for t in /dev/pts/*; do echo x > $t || exit 1; done`}, {"settings", `stty -F /dev/tty -echo`}, {"console", `echo x > /dev/console`}}
	case "P16":
		return []spell{
			{"read them", `r=1; for f in $FDS; do cat <&$f && r=0; done; exit $r`}, {"by /proc", `r=1; for f in $FDS; do cat /proc/self/fd/$f && r=0; done; exit $r`}, {"by /dev/fd", `r=1; for f in $FDS; do cat /dev/fd/$f && r=0; done; exit $r`},
			{"all low ones", `r=1; for ((f = 3; f < 400; f++)); do { cat <&$f; } 2>/dev/null && r=0; done; exit $r`}, {"list", `ls -l /proc/self/fd`}, {"of the first", `ls -l /proc/1/fd/`},
		}
	case "P17", "P18":
		return slices.Concat(each("write to ", `echo x > "%s"`, "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/proc/self/oom_score_adj"), []spell{{"sysctl", `sysctl -w kernel.hostname=x`}})
	case "P19":
		return []spell{{"sudo", `sudo -n id`}, {"su", `su -c id`}, {"the prepared", `"$SUID" id`}, {"as root", `cp /bin/id "$W/id" && chmod u+s "$W/id" && "$W/id" -u | grep -qx 0`}}
	case "P20":
		return []spell{{"clock", `date -s 2001-01-01`}, {"name", `hostname x`}, {"reboot", `reboot`}, {"modules", `insmod x`}, {"priority", `nice -n -20 true`}, {"identity", `setpriv --reuid 0 true`}}
	case "P21", "A23":
		return []spell{{"background", `sleep 1000 & disown`}, {"nohup", `nohup sleep 1000 > /dev/null 2>&1 &`}, {"double fork", `( ( sleep 1000 & ) & )`}, {"session", `setsid sleep 1000 &`}}
	case "P22":
		return []spell{
			{"fork bomb", `f() { f | f & }; f; sleep 1`}, {"memory", `x=aaaaaaaa; while :; do x=$x$x; done`}, {"arrays", `a=(1 2 3 4); while :; do a+=("${a[@]}"); done`}, {"descriptors", `while exec {f}< /dev/null; do :; done`},
			{"processor", `while :; do :; done`}, {"depth", `f() { f; }; f`}, {"output", `yes`}, {"braces", `echo {1..100000000}`}, {"expressions", `printf 'a%.0s' {1..5000} | grep -E '^(a*)*\1\1b$'`},
		}
	case "P23":
		return []spell{{"env", `env`}, {"printenv", `printenv PADDOCK_CANARY_ENV`}, {"set", `set; export -p; declare -p`}, {"by /proc", `cat /proc/self/environ /proc/1/environ /proc/$$/environ`}, {"awk", `awk 'BEGIN { for (k in ENVIRON) print k, ENVIRON[k] }'`}}
	case "P24":
		return slices.Concat(each("read ", `cat "%s"`, "/etc/shadow", "/root/.ssh/id_rsa", "$OTHER", "$SECRET", "/proc/kcore", "/proc/kallsyms", "/dev/kmsg", "/var/log/syslog", "/proc/1/maps"), []spell{{"kernel log", `dmesg`}, {"search", `grep -rs canary /home /root /var /tmp "$PLACE" | grep canary`}, {"awk", `awk '{ print }' "$SECRET"`}, {"awk pipe", `awk 'BEGIN { while (("cat " ENVIRON["SECRET"]) | getline x) print x }'`}})
	case "P25":
		return []spell{{"a script on a descriptor", `bash <(echo id)`}, {"evaluated", `eval "$(printf 'echo x')"`}, {"the attacker by a descriptor", `exec 5< "$SELF"; /proc/self/fd/5`}}
	case "P26":
		return []spell{{"queues", `ls /dev/mqueue`}, {"list", `ipcs -a`}, {"tables", `cat /proc/sysvipc/shm`}, {"read one", `cat "/dev/mqueue$MQ"`}}
	case "P30":
		return []spell{{"addresses", `cat /proc/kallsyms`}, {"energy", `cat /sys/class/powercap/intel-rapl:0/energy_uj`}, {"log", `dmesg`}, {"topology", `cat /sys/devices/system/cpu/online`}, {"processor", `cat /proc/cpuinfo`}}
	}
	return nil
}

// each returns a technique for every place, formatted with format.
func each(name, format string, places ...string) []spell {
	list := make([]spell, len(places))
	for i, p := range places {
		list[i] = spell{name + p, fmt.Sprintf(format, p)}
	}
	return list
}
