from common import kept, raises, same, sandbox

from daytona import CodeRunParams
from daytona_toolbox_api_client.exceptions import ApiException  # what this client lets through from code_run
from daytona.common.errors import DaytonaProcessExecutionTimeoutError, DaytonaTimeoutError

with sandbox() as box:
    p = box.process
    r = p.exec("echo out; echo err >&2; exit 3")
    same("both streams in order", r.result, "out\nerr\n")
    same("the code", r.exit_code, 3)
    same("artifacts have the output", r.artifacts.stdout, "out\nerr\n")
    same("a directory", p.exec("pwd", cwd="/tmp").result, "/tmp\n")
    same("variables", p.exec('echo "$A $B"', env={"A": "1 2", "B": "$C"}).result, "1 2 $C\n")
    same("several lines", p.exec("for i in 1 2\ndo echo $i\ndone").result, "1\n2\n")
    same("quotes", p.exec("echo \"it's\" '\"here\"'").result, "it's \"here\"\n")
    same("bytes that are no text", p.exec("printf 'a\\377b'").result, "a\ufffdb")
    raises("a time limit", DaytonaTimeoutError, lambda: p.exec("sleep 100", timeout=1))
    raises("its class", DaytonaProcessExecutionTimeoutError, lambda: p.exec("sleep 100", timeout=1))
    same("it goes on after a limit", p.exec("echo on").result, "on\n")
    same("an unknown command", p.exec("no-such-command-here").exit_code, 127)
    same("standard input is empty", p.exec("cat").result, "")
    same("long commands", p.exec("echo " + "x" * 200_000 + " | wc -c").result.strip(), "200001")
    same("much output", len(p.exec("head -c 3000000 /dev/zero | tr '\\0' x").result), 3_000_000)
    same("a user that is not root", p.exec("id -un").result, "user\n")
    r = p.code_run("import sys\nprint(6 * 7, sys.argv[1:])", CodeRunParams(argv=["a", "b c"], env={"X": "y"}))
    same("code", r.result, "42 ['a', 'b c']\n")
    r = p.code_run("raise SystemExit(5)")
    same("the code's exit", r.exit_code, 5)
    r = p.code_run("1/0")
    kept("a traceback", "ZeroDivisionError" in r.result and r.exit_code == 1)
    raises("a time limit of code", ApiException, lambda: p.code_run("import time; time.sleep(100)", timeout=1))
