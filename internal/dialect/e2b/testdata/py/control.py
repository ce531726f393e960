"""The control plane, by the client that waits and by the one that does not."""
import os
import time
import uuid

import httpx
from e2b import (
    AsyncSandbox,
    AuthenticationException,
    Sandbox,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from promise import done, promise, raises, until

template = os.environ["TEMPLATE"]
mark = str(uuid.uuid4())
sandbox = Sandbox.create(template, metadata={"mark": mark, "a b": "c&d=é %"}, envs={"FOO": "bar"}, timeout=120)


@promise("what a sandbox is told of itself is what was asked for")
def _():
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.metadata == {"mark": mark, "a b": "c&d=é %"}, info.metadata
    assert info.state == SandboxState.RUNNING
    assert Sandbox.get_info(sandbox.sandbox_id).metadata == info.metadata


@promise("a variable of the sandbox is in every command")
def _():
    assert sandbox.commands.run("echo $FOO").stdout == "bar\n"


@promise("sandboxes are listed by metadata and state, in pages")
def _():
    more = [Sandbox.create(template, metadata={"mark": mark}) for _ in range(2)]
    pages = Sandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=2)
    assert len(pages.next_items()) == 2
    assert pages.has_next
    rest = pages.next_items()
    assert [s.sandbox_id for s in rest] == [sandbox.sandbox_id]
    assert not pages.has_next
    one = Sandbox.list(query=SandboxQuery(metadata={"mark": mark, "a b": "c&d=é %"})).next_items()
    assert [s.sandbox_id for s in one] == [sandbox.sandbox_id]
    assert all(s.kill() for s in more)


@promise("the end of a sandbox moves both ways, and connecting never brings it nearer")
def _():
    sandbox.set_timeout(1000)
    assert sandbox.get_info().end_at.timestamp() - time.time() > 900
    Sandbox.set_timeout(sandbox.sandbox_id, 100)
    assert sandbox.get_info().end_at.timestamp() - time.time() <= 100
    again = Sandbox.connect(sandbox.sandbox_id, timeout=1)
    assert again.commands.run("echo again").stdout == "again\n"
    assert again.get_info().end_at.timestamp() - time.time() > 30


@promise("there are metrics soon")
def _():
    assert sandbox.get_metrics()[0].mem_total > 0


@promise("a sandbox that is not there is not found, and what is wrong is refused")
def _():
    gone = "i" + "a" * 20
    raises(SandboxNotFoundException, lambda: Sandbox.get_info(gone))
    raises(SandboxNotFoundException, lambda: Sandbox.connect(gone))
    assert not Sandbox.kill(gone)
    raises(AuthenticationException, lambda: Sandbox.create(template, api_key="e2b_" + "0" * 40))
    said = raises(SandboxException, lambda: Sandbox.create("desktop"))
    assert "template 'desktop' not found" in str(said), said


@promise("a paused sandbox answers nobody, and goes on when it is connected to")
def _():
    paused = Sandbox.create(template)
    paused.files.write("here", "still")
    paused.pause()
    assert paused.get_info().state == SandboxState.PAUSED
    assert not paused.is_running()
    paused.connect(timeout=60)
    assert paused.files.read("here") == "still"
    assert paused.kill()


@promise("a signed URL gives and takes files where it names no sandbox")
def _():
    sandbox.files.write("signed.txt", "signed")
    down = sandbox.download_url("signed.txt", use_signature_expiration=60)
    res = httpx.get(down)
    assert (res.status_code, res.text) == (200, "signed"), res
    assert httpx.get(down.replace("signature=v1_", "signature=v1_x")).status_code == 401
    up = sandbox.upload_url("other.txt", use_signature_expiration=60)
    assert httpx.post(up, files={"file": b"other"}).status_code == 200
    assert sandbox.files.read("other.txt") == "other"


@promise("the network of a living sandbox is replaced")
def _():
    sandbox.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.com"]})
    assert sandbox.get_info().network["allow_out"] == ["example.com"]
    sandbox.update_network({})


@promise("a living sandbox without a network gets one, and loses it again")
def _():
    closed = Sandbox.create(template, allow_internet_access=False)

    def name():
        return closed.commands.run("getent hosts example.com || true").stdout

    def way():
        return closed.commands.run("timeout 20 bash -c '</dev/tcp/192.0.2.1/80' 2>&1 && echo open || echo closed").stdout.splitlines()[-1]

    assert (name(), way()) == ("", "closed")
    closed.update_network({"deny_out": ["192.0.2.0/24"]})
    assert "example.com" in name()
    closed.update_network({"deny_out": ["0.0.0.0/0"]})
    assert (name(), way()) == ("", "closed")
    closed.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.com"]})
    assert "example.com" in name()
    closed.kill()


@promise("a sandbox that is killed while a command runs cuts it")
def _():
    doomed = Sandbox.create(template)
    command = doomed.commands.run("sleep 1000", background=True)
    assert doomed.kill()
    raises(TimeoutException, command.wait)


@promise("a sandbox ends by itself")
def _():
    short = Sandbox.create(template, timeout=2)
    until(lambda: not short.is_running())


@promise("the client that does not wait does the same")
async def _():
    other = await AsyncSandbox.create(template, metadata={"mark": mark}, timeout=60)
    assert await other.is_running()
    assert (await other.commands.run("echo async")).stdout == "async\n"
    assert (await other.get_info()).metadata == {"mark": mark}
    await other.set_timeout(100)
    listed = await AsyncSandbox.list(query=SandboxQuery(metadata={"mark": mark})).next_items()
    assert other.sandbox_id in [s.sandbox_id for s in listed]
    assert len(await other.get_metrics()) > 0
    await other.pause()
    again = await AsyncSandbox.connect(other.sandbox_id, timeout=60)
    assert await again.is_running()
    assert await again.kill()
    assert not await other.is_running()


assert sandbox.kill()
done()
