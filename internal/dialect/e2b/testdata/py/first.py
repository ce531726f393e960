"""A sandbox is made, runs a command, and is killed: as in E2B's own example."""
import os

from e2b import Sandbox
from promise import done, promise

sandbox = Sandbox.create(os.environ["TEMPLATE"])


@promise("a sandbox runs")
def _():
    assert sandbox.is_running()


@promise("a command says hello")
def _():
    result = sandbox.commands.run("echo 'Hello World!'")
    assert result.stdout == "Hello World!\n", result
    assert result.exit_code == 0, result


@promise("a killed sandbox does not run")
def _():
    assert sandbox.kill()
    assert not sandbox.is_running()
    assert not Sandbox.kill(sandbox.sandbox_id)


done()
