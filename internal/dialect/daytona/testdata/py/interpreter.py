from common import kept, raises, same, sandbox

from daytona import DaytonaNotFoundError, DaytonaTimeoutError

with sandbox() as box:
    i = box.code_interpreter
    out = []
    r = i.run_code("import sys\nx = 41\nprint('out')\nprint('err', file=sys.stderr)", on_stdout=lambda m: out.append(m.output))
    same("streams", (r.stdout, r.stderr, r.error, "".join(out)), ("out\n", "err\n", None, "out\n"))
    same("the state stays", i.run_code("print(x + 1)").stdout, "42\n")
    r = i.run_code("1/0")
    kept("an error", r.error.name == "ZeroDivisionError" and "division" in r.error.value and "Traceback" in r.error.traceback)
    same("variables of one cell", i.run_code("import os; print(os.environ['A'])", envs={"A": "b"}).stdout, "b\n")
    c = i.create_context(cwd="/tmp")
    same("a context of its own", (i.run_code("import os; print(os.getcwd(), 'x' in globals())", context=c).stdout), "/tmp False\n")
    same("contexts are listed", [x.id for x in i.list_contexts()], [c.id])
    raises("a time limit", DaytonaTimeoutError, lambda: i.run_code("import time; time.sleep(100)", timeout=1))
    same("it goes on after a limit", i.run_code("print(x)").stdout, "41\n")
    i.delete_context(c)
    raises("a removed context", DaytonaNotFoundError, lambda: i.delete_context(c))
