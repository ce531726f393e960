import asyncio

from common import kept, raises, same, sandbox

from daytona import DaytonaNotFoundError, SessionExecuteRequest
from daytona.common.errors import DaytonaConflictError, DaytonaSessionEndedError, DaytonaCommandAlreadyCompletedError
import time

with sandbox() as box:
    p = box.process
    p.create_session("s 1/ü")

    def run(command, **more):
        return p.execute_session_command("s 1/ü", SessionExecuteRequest(command=command, **more))

    r = run("cd /tmp; export A=b; echo out; echo err >&2")
    same("output", (r.stdout, r.stderr, r.exit_code), ("out\n", "err\n", 0))
    same("directory and variables stay", run("echo $(pwd) $A").stdout, "/tmp b\n")
    same("a failure", run("false").exit_code, 1)
    same("functions stay", (run("f() { echo called $1; }").exit_code, run("f x").stdout), (0, "called x\n"))
    same("several lines", run("for i in 1 2; do\necho $i\ndone").stdout, "1\n2\n")
    kept("a fault of syntax ends nothing", run("echo (").exit_code != 0 and run("echo on").stdout == "on\n")
    raises("a name is had once", DaytonaConflictError, lambda: p.create_session("s 1/ü"))
    s = p.get_session("s 1/ü")
    same("commands are kept in order", [c.command for c in s.commands][-1], "echo on")
    kept("it is listed", [x.session_id for x in p.list_sessions()] == ["s 1/ü"])

    r = run("read line; echo got $line", run_async=True)
    same("it runs", p.get_session_command("s 1/ü", r.cmd_id).exit_code, None)
    p.send_session_command_input("s 1/ü", r.cmd_id, "hello")
    while p.get_session_command("s 1/ü", r.cmd_id).exit_code is None:
        time.sleep(0.02)
    logs = p.get_session_command_logs("s 1/ü", r.cmd_id)
    same("input reaches it", logs.stdout, "got hello\n")
    raises("an ended one takes none", DaytonaCommandAlreadyCompletedError, lambda: p.send_session_command_input("s 1/ü", r.cmd_id, "more"))

    r = run("for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.1; done", run_async=True)
    out, errs = [], []
    asyncio.run(p.get_session_command_logs_async("s 1/ü", r.cmd_id, out.append, errs.append))
    same("followed logs", ("".join(out), "".join(errs)), ("o1\no2\no3\n", "e1\ne2\ne3\n"))
    same("what was followed has ended", p.get_session_command("s 1/ü", r.cmd_id).exit_code, 0)

    same("a command may end its session", run("exit 7").exit_code, 7)
    raises("an ended session", DaytonaSessionEndedError, lambda: run("true"))
    p.delete_session("s 1/ü")
    raises("a removed session", DaytonaNotFoundError, lambda: p.get_session("s 1/ü"))
    p.create_session("two")
    p.execute_session_command("two", SessionExecuteRequest(command="sleep 1000", run_async=True))
    p.delete_session("two")
    same("what ran in it has ended", p.exec("pgrep -x sleep || ps ax | grep -c '[s]leep 1000'").result.strip(), "0")
