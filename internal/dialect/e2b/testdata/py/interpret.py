"""Every method of e2b-code-interpreter, of the two kinds of clients."""
import asyncio
import os

from e2b_code_interpreter import AsyncSandbox, Sandbox
from promise import done, promise, raises

template = os.environ["CODE_TEMPLATE"]
sandbox = Sandbox.create(template, envs={"OURS": "here"})


@promise("a cell gives its value, its output and its number")
def _():
    heard = []
    got = sandbox.run_code("print('out')\nimport sys\nprint('bad', file=sys.stderr)\nx = 41\n'te' + 'xt'",
                           on_stdout=heard.append, on_stderr=heard.append, on_result=heard.append)
    assert got.text == "text", got
    assert got.logs.stdout == ["out\n"] and got.logs.stderr == ["bad\n"], got.logs
    assert got.execution_count == 1, got
    assert got.error is None, got.error
    assert len(heard) == 3, heard


@promise("state is kept")
def _():
    assert sandbox.run_code("x + 1").text == "42"


@promise("an error is the language's own")
def _():
    error = sandbox.run_code("1 / 0").error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero"), error
    assert "Traceback" in error.traceback


@promise("results come in their forms")
def _():
    result = sandbox.run_code("from IPython.display import display\ndisplay({'text/latex': 'x'}, raw=True)").results[0]
    assert list(result.formats()) == ["latex"], list(result.formats())


@promise("variables are the sandbox's, and for one cell those of the cell")
def _():
    assert sandbox.run_code("import os; os.environ['OURS']").text == "here"
    assert sandbox.run_code("os.environ['MINE']", envs={"MINE": "now"}).text == "now"
    assert sandbox.run_code("os.environ.get('MINE', 'none')").text == "none"


@promise("contexts are made, listed, restarted and removed")
def _():
    context = sandbox.create_code_context(cwd="/tmp", language="python")
    assert (context.language, context.cwd) == ("python", "/tmp"), context
    assert sandbox.run_code("import os; y = 1; os.getcwd()", context=context).text == "/tmp"
    there = sandbox.list_code_contexts()
    assert [c.language for c in there[:2]] == ["python", "javascript"] and there[-1].id == context.id, there
    sandbox.restart_code_context(context)
    assert sandbox.run_code("y", context=context).error.name == "NameError"
    sandbox.remove_code_context(context)
    assert context.id not in [c.id for c in sandbox.list_code_contexts()]
    raises(Exception, lambda: sandbox.run_code("1", context=context))


@promise("JavaScript and bash run too")
def _():
    assert sandbox.run_code("const z = 2; z", language="javascript").text == "2"
    assert sandbox.run_code("echo $((6 * 7))", language="bash").logs.stdout == ["42\n"]


@promise("R, Java and TypeScript run where they are installed, and say what they need where not")
def _():
    for language, program, code, want in (("r", "Rscript", "x <- 20\nx * 2 + 2", "42"), ("java", "javac", "int x = 20;\nx * 2 + 2", "42"), ("ts", "node", "const x: number = 42; x", "42")):
        there = sandbox.commands.run(f"command -v {program} || true").stdout
        try:
            execution = sandbox.run_code(code, language=language)
        except Exception as error:
            assert not there or language == "ts", (language, error)
            assert language == "ts" or program in str(error) or "JDK" in str(error), error
            continue
        assert there and (want in (execution.text or "") or language == "ts" and execution.error), (language, execution)


@promise("commands and cells have one Python, and import what the other installed")
def _():
    assert sandbox.commands.run("python3 -c 'import sys; print(sys.executable)'").stdout.strip() == sandbox.run_code("import sys; print(sys.executable)").logs.stdout[0].strip()
    if sandbox.run_code("import pip").error:
        return  # the machine has no pip
    sandbox.run_code("""import zipfile
for name in ("of_cell", "of_command"):
    with zipfile.ZipFile(f"/tmp/{name}-1-py3-none-any.whl", "w") as z:
        z.writestr(f"{name}.py", "answer = 42")
        z.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n")
        z.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr(f"{name}-1.dist-info/RECORD", "")
""")
    install = "pip install --no-index --no-cache-dir --disable-pip-version-check /tmp/%s-1-py3-none-any.whl"
    sandbox.commands.run(install % "of_command", timeout=120)
    assert sandbox.run_code("import of_command; of_command.answer").text == "42"
    sandbox.run_code("!" + install % "of_cell")
    assert sandbox.commands.run("python3 -c 'import of_cell; print(of_cell.answer)'").stdout == "42\n"


@promise("a kernel that ends is told, and the next cell runs")
def _():
    assert sandbox.run_code("os._exit(1)").error.name == "UnexpectedEndOfExecution"
    assert sandbox.run_code("1 + 1").text == "2"


@promise("the asynchronous client runs cells too")
async def _():
    other = await AsyncSandbox.create(template)
    try:
        context = await other.create_code_context()
        assert (await other.run_code("6 * 7", context=context)).text == "42"
        assert (await other.run_code("import asyncio; await asyncio.sleep(0, 5)")).text == "5"
        heard = []
        execution = await other.run_code(
            "import os, sys; print('out'); print('bad', file=sys.stderr); os.environ['MINE']", context=context, envs={"MINE": "now"},
            on_stdout=lambda m: heard.append(m.line), on_stderr=lambda m: heard.append(m.line), on_result=lambda r: heard.append(r.text), timeout=60,
        )
        assert sorted(heard) == ["bad\n", "now", "out\n"] and execution.text == "now", heard
        failed = []
        await other.run_code("1 / 0", on_error=lambda e: failed.append(e.name))
        assert failed == ["ZeroDivisionError"]
        there = await other.create_code_context(cwd="/tmp", language="bash")
        assert (there.language, there.cwd) == ("bash", "/tmp")
        assert (await other.run_code("pwd", context=there)).logs.stdout == ["/tmp\n"]
        both = await asyncio.gather(*[other.run_code(f"import time; time.sleep(0.2); {i}", context=context) for i in range(3)])
        assert [e.text for e in both] == ["0", "1", "2"]
        await other.restart_code_context(context)
        await other.remove_code_context(context)
        assert len(await other.list_code_contexts()) >= 2
    finally:
        await other.kill()


sandbox.kill()
done()
