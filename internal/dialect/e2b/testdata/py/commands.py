"""Every method of commands and pty."""
import os

from e2b import AuthenticationException, CommandExitException, InvalidArgumentException, NotFoundException, Sandbox, SandboxException, TimeoutException
from e2b.sandbox.commands.command_handle import PtySize
from promise import done, promise, raises, until

sandbox = Sandbox.create(os.environ["TEMPLATE"], envs={"GLOBAL": "global"})
commands, files, pty = sandbox.commands, sandbox.files, sandbox.pty


@promise("output, error output and exit of a command are told")
def _():
    seen = []
    result = commands.run("echo out; echo err >&2", on_stdout=seen.append)
    assert (result.stdout, result.stderr, result.exit_code, seen) == ("out\n", "err\n", 0, ["out\n"]), result
    error = raises(CommandExitException, lambda: commands.run("echo e >&2; exit 3"))
    assert (error.exit_code, error.stderr, error.error) == (3, "e\n", "exit status 3"), error
    assert raises(CommandExitException, lambda: commands.run("no-such-program")).exit_code == 127


@promise("a command has variables, a directory and a user")
def _():
    result = commands.run("echo $OWN $GLOBAL $HOME $USER; pwd; whoami", envs={"OWN": "own"}, cwd="/tmp", user="user")
    assert result.stdout == "own global /home/user user\n/tmp\nuser\n", result
    error = raises(InvalidArgumentException, lambda: commands.run("pwd", cwd="/nope"))
    assert "cwd '/nope' does not exist" in str(error), error
    error = raises(AuthenticationException, lambda: commands.run("whoami", user="zork"))
    assert "invalid username: 'zork'" in str(error), error
    if os.environ["TIER"] == "jail":
        error = raises(AuthenticationException, lambda: commands.run("id -u", user="root"))
        assert "invalid username: 'root': commands run as user" in str(error), error
    else:
        assert commands.run("id -u", user="root").stdout == "0\n"


@promise("sudo is there where the tier has users")
def _():
    if os.environ["TIER"] == "jail":
        assert raises(CommandExitException, lambda: commands.run("sudo -n whoami")).exit_code != 0
    else:
        result = commands.run("sudo whoami; sudo -u user id -un; sudo sh -c 'exit 7' || echo $?")
        assert result.stdout == "root\nuser\n7\n", result


@promise("a command whose time is over is killed, and the sandbox goes on")
def _():
    raises(TimeoutException, lambda: commands.run("sleep 1000", timeout=0.5))
    assert commands.run("echo on").stdout == "on\n"
    until(lambda: not any("sleep 1000" in p.args for p in commands.list()))


@promise("a command in the background is listed, connected to and killed")
def _():
    command = commands.run("sleep 1000", background=True, timeout=0)
    one = next(p for p in commands.list() if p.pid == command.pid)
    assert (one.cmd, one.args) == ("/bin/bash", ["-l", "-c", "sleep 1000"]), one
    again = commands.connect(command.pid)
    assert commands.kill(command.pid)
    for c in (command, again):
        error = raises(CommandExitException, c.wait)
        assert (error.exit_code, error.error) == (-1, "signal: killed"), error
    assert not commands.kill(command.pid)
    raises(NotFoundException, lambda: commands.connect(999_999))


@promise("input arrives in order, at once or streamed, and ends")
def _():
    command = commands.run("cat", background=True, stdin=True)
    commands.send_stdin(command.pid, "one ")
    commands.stream_input(command.pid, ["two ", b"three ", "x" * 100_000])
    commands.close_stdin(command.pid)
    assert command.wait().stdout == "one two three " + "x" * 100_000
    closed = commands.run("sleep 1000", background=True)
    raises(SandboxException, lambda: commands.send_stdin(closed.pid, "x"))
    closed.kill()
    raises(NotFoundException, lambda: commands.stream_input(999_999, ["x"]))


@promise("a command that lost its client goes on")
def _():
    command = commands.run("read line; echo $line > went", background=True, stdin=True)
    command.disconnect()
    commands.send_stdin(command.pid, "this far\n")
    until(lambda: files.exists("went") and files.read("went") == "this far\n")


@promise("a terminal has a size, takes input, and ends")
def _():
    terminal = pty.create(PtySize(rows=24, cols=80), cwd="/", envs={"ABC": "123"})
    pty.resize(terminal.pid, PtySize(rows=30, cols=100))
    pty.send_stdin(terminal.pid, b"stty size; echo $ABC-$((40+2)); exit\n")
    out = []
    assert terminal.wait(on_pty=out.append).exit_code == 0
    assert b"30 100" in b"".join(out) and b"123-42" in b"".join(out), out


@promise("a terminal is connected to and killed")
def _():
    terminal = pty.create(PtySize(rows=24, cols=80))
    again = pty.connect(terminal.pid)
    assert pty.kill(terminal.pid)
    for p in (terminal, again):
        assert raises(CommandExitException, p.wait).exit_code == -1
    assert not pty.kill(terminal.pid)


@promise("a command of a sandbox that is killed fails as timed out")
def _():
    command = commands.run("sleep 1000", background=True, timeout=0)
    sandbox.kill()
    raises(TimeoutException, command.wait)


done()
