"""Uses the client that openapi-python-client generated from the contract."""

import json
import sys
from io import BytesIO

from generated import AuthenticatedClient
from generated.api.default import create, list_, list_files, make_dir, processes, read_file, remove, signal, start, stat_file, status, write_file
from generated.models import Begun, Command, Create, Failure, Signal
from generated.types import File

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])


def events(text):
    """The data of each text event."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


box = create.sync(client=client, body=Create.from_dict({"id": "py", "labels": {"made-by": "python"}}))
assert box.id == "py" and box.state == "ready", box
assert [s.id for s in list_.sync(client=client, label=["made-by=python"]).sandboxes] == ["py"]

ran = events(start.sync("py", client=client, body=Command(args=["sh", "-c", "echo out; echo err >&2; exit 3"])))
assert "".join(e.get("stdout", "") for e in ran) == "out\n", ran
assert "".join(e.get("stderr", "") for e in ran) == "err\n", ran
assert "begin" in ran[0] and ran[-1]["exit"]["code"] == 3, ran

begun = start.sync("py", client=client, body=Command(args=["cat"], input_=True, detached=True))
assert isinstance(begun, Begun), begun
assert begun.pid in [p.pid for p in processes.sync("py", client=client).processes]
assert signal.sync("py", begun.pid, client=client, body=Signal(signal=9)) is None

assert make_dir.sync("py", client=client, path="/tmp/d", mode="0750") is None
assert write_file.sync("py", client=client, path="/tmp/d/f", mode="0600", body=File(payload=BytesIO(b"text\n"))) is None
assert read_file.sync("py", client=client, path="/tmp/d/f").payload.read() == b"text\n"
info = stat_file.sync("py", client=client, path="/tmp/d/f")
assert (info.type_, info.mode) == ("file", "0600"), info
info = stat_file.sync("py", client=client, path="/tmp/d")
assert (info.type_, info.mode) == ("directory", "0750"), info
names = [e["file"]["name"] for e in events(list_files.sync("py", client=client, path="/tmp/d")) if "file" in e]
assert names == ["/tmp/d/f"], names

refused = status.sync("no-such", client=client)
assert isinstance(refused, Failure) and refused.error.kind == "not_found", refused
assert remove.sync("py", client=client) is None
print("done")
