import os

from common import client, kept, raises, same, sandbox

from daytona import CreateSandboxFromSnapshotParams, DaytonaNotFoundError
from daytona.common.errors import DaytonaConflictError, DaytonaError

raises("an unknown snapshot", DaytonaNotFoundError, lambda: client.create(CreateSandboxFromSnapshotParams(snapshot="never")))
if os.environ["TIER"] == "jail":
    with sandbox() as box:
        try:
            box.create_snapshot("of-jail")
            client.snapshot.delete(client.snapshot.get("of-jail"))
            kept("a jail has snapshots of files")
        except DaytonaError as err:
            kept("a jail has no snapshots, and says so", "jail" in str(err))
    raise SystemExit

with sandbox(env_vars={"A": "b"}) as box:
    box.process.exec("echo kept > kept")
    box.create_snapshot("mine")
    raises("a name is had once", DaytonaConflictError, lambda: box.create_snapshot("mine"))
    s = client.snapshot.get("mine")
    same("its source", s.source_sandbox_id, box.id)
    kept("it is listed", [x.name for x in client.snapshot.list().items] == ["mine"])
    fork = box.fork("twin")
    try:
        same("a fork has the files", fork.process.exec("cat kept; echo $A").result, "kept\nb\n")
        fork.process.exec("echo changed > kept")
        same("and each goes its own way", box.process.exec("cat kept").result, "kept\n")
    finally:
        fork.delete()
with sandbox(snapshot="mine", env_vars={"C": "d"}) as box:
    same("a sandbox of a snapshot", box.process.exec("cat kept; echo $A $C; id -un").result, "kept\nb d\nuser\n")
client.snapshot.delete(s)
raises("a removed one is not found", DaytonaNotFoundError, lambda: client.snapshot.get("mine"))
