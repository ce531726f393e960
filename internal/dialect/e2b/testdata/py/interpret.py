"""Every method of e2b-code-interpreter, of the two kinds of clients."""
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
    assert {"python", "javascript"} <= {c.language for c in sandbox.list_code_contexts()}
    sandbox.restart_code_context(context)
    assert sandbox.run_code("y", context=context).error.name == "NameError"
    sandbox.remove_code_context(context)
    assert context.id not in [c.id for c in sandbox.list_code_contexts()]
    raises(Exception, lambda: sandbox.run_code("1", context=context))


@promise("JavaScript and bash run too")
def _():
    assert sandbox.run_code("const z = 2; z", language="javascript").text == "2"
    assert sandbox.run_code("echo $((6 * 7))", language="bash").logs.stdout == ["42\n"]


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
        await other.restart_code_context(context)
        await other.remove_code_context(context)
        assert len(await other.list_code_contexts()) >= 2
    finally:
        await other.kill()


sandbox.kill()
done()
