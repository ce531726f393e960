from common import client, kept, raises, same, sandbox

from daytona import Daytona, DaytonaConfig, DaytonaNotFoundError, DaytonaError, DaytonaAuthenticationError, DaytonaConflictError
import os

with sandbox(name="first", labels={"a": "1"}, env_vars={"FROM": "env"}, auto_stop_interval=30) as box:
    same("its state", box.state.value, "started")
    same("its name", box.name, "first")
    same("its labels", box.labels["a"], "1")
    same("its interval", box.auto_stop_interval, 30)
    kept("it has sizes", box.cpu > 0 and box.memory > 0 and box.disk > 0)
    same("variables reach commands", box.process.exec("echo $FROM").result, "env\n")
    same("it is found by ID", client.get(box.id).id, box.id)
    same("it is found by name", client.get("first").id, box.id)
    raises("a name is had once", DaytonaConflictError, lambda: client.create(__import__("daytona").CreateSandboxFromSnapshotParams(name="first")))
    listed = [b.id for b in client.list()]
    kept("it is listed", box.id in listed)
    box.set_labels({"b": "2"})
    box.refresh_data()
    same("labels are replaced", box.labels, {"b": "2"})
    box.set_autostop_interval(60)
    box.set_auto_archive_interval(120)
    box.set_auto_delete_interval(240)
    box.refresh_data()
    same("intervals are set", (box.auto_stop_interval, box.auto_archive_interval, box.auto_delete_interval), (60, 120, 240))
    box.refresh_activity()
    box.process.exec("echo kept > kept")
    same("the directory", box.get_work_dir(), box.process.exec("pwd").result.strip())
    kept("the home", box.get_user_home_dir().startswith("/"))
    if os.environ["TIER"] != "sim":
        box.stop()
        same("it is stopped", client.get(box.id).state.value, "stopped")
        raises("a stopped one runs nothing", DaytonaError, lambda: box.process.exec("true"))
        box.start()
        same("it is started again", client.get(box.id).state.value, "started")
    same("files stay", box.process.exec("cat kept").result, "kept\n")
    gone = box.id

raises("a removed one is not found", DaytonaNotFoundError, lambda: client.get(gone))
raises("nor one that never was", DaytonaNotFoundError, lambda: client.get("never"))
bad = Daytona(DaytonaConfig(api_key="wrong", api_url=os.environ["DAYTONA_API_URL"]))
raises("a wrong key is refused", DaytonaAuthenticationError, lambda: bad.get("never"))
with sandbox(network_block_all=True) as box:
    box.refresh_data()
    kept("no network if none is asked for", box.network_block_all and box.process.exec("exec 3<>/dev/tcp/203.0.113.1/80").exit_code != 0)
