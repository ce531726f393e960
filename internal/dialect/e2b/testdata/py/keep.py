# only: gvisor
"""Snapshots, forks and templates."""
import os
import tempfile

from e2b import Sandbox, Template
from promise import done, promise

template = os.environ["TEMPLATE"]


@promise("a snapshot keeps files, and sandboxes are made from it")
def _():
    sandbox = Sandbox.create(template)
    sandbox.files.write("here", "still")
    snapshot = sandbox.create_snapshot()
    copy = Sandbox.create(snapshot.snapshot_id)
    assert copy.files.read("here") == "still"
    assert copy.kill()
    listed = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
    assert [s.snapshot_id for s in listed] == [snapshot.snapshot_id]
    assert Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not Sandbox.delete_snapshot(snapshot.snapshot_id)
    forks = sandbox.fork(count=1)
    assert forks[0].files.read("here") == "still"
    assert forks[0].kill() and sandbox.kill()


@promise("a template is built in steps, and a sandbox of it has what they made")
def _():
    context = tempfile.mkdtemp()
    with open(os.path.join(context, "one.txt"), "w") as f:
        f.write("one")
    built = (
        Template(file_context_path=context)
        .from_template(template)
        .set_envs({"GREETING": "hello"})
        .copy("one.txt", "/home/user/two.txt")
        .run_cmd("echo $GREETING > /home/user/said")
    )
    logs = []
    Template.build(built, "rig-python", on_build_logs=lambda entry: logs.append(entry.message))
    assert logs
    sandbox = Sandbox.create("rig-python")
    assert sandbox.commands.run("cat said two.txt").stdout == "hello\none"
    assert sandbox.kill()


done()
