"""Options, and ways of the asynchronous client, that the other scripts leave out."""
import datetime
import os
import uuid

from e2b import (
    AsyncSandbox,
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    Sandbox,
    SandboxException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from promise import done, promise, raises, until

template, tier = os.environ["TEMPLATE"], os.environ["TIER"]
mark = str(uuid.uuid4())
sandbox = Sandbox.create(template, metadata={"mark": mark}, timeout=120)


@promise("a repeated creation is one")
def _():
    key = str(uuid.uuid4())
    one = Sandbox.create(template, idempotency_key=key, allow_internet_access=False)
    two = Sandbox.create(template, idempotency_key=key, allow_internet_access=False)
    assert one.sandbox_id == two.sandbox_id
    assert one.get_info().allow_internet_access is False
    assert one.kill()


@promise("sandboxes are listed by state, template, start and order")
def _():
    second = Sandbox.create(template, metadata={"mark": mark})

    def ids(order=None, **query):
        return [s.sandbox_id for s in Sandbox.list(query=SandboxQuery(metadata={"mark": mark}, **query), order=order).next_items()]

    assert ids(order="asc") == [sandbox.sandbox_id, second.sandbox_id]
    assert ids(order="desc", state=[SandboxState.RUNNING]) == [second.sandbox_id, sandbox.sandbox_id]
    assert ids(state=[SandboxState.PAUSED]) == []
    assert ids(started_after=second.get_info().started_at) == [second.sandbox_id]
    assert ids(template="none") == []
    assert second.kill()


@promise("what is to happen at the end is told, and happens")
def _():
    one = Sandbox.create(template, timeout=2, lifecycle={"on_timeout": "pause", "auto_resume": True})
    life = one.get_info().lifecycle
    assert (life["on_timeout"], life["auto_resume"]) == ("pause", True), life
    until(lambda: one.get_info().state == SandboxState.PAUSED)
    assert one.commands.run("echo awake").stdout == "awake\n"
    assert one.kill()
    raises(SandboxException, lambda: Sandbox.create(template, lifecycle={"on_timeout": {"action": "pause", "keep_memory": False}}))


@promise("a private sandbox has a token for its traffic")
def _():
    one = Sandbox.create(template, network={"allow_public_traffic": False, "mask_request_host": "localhost:${PORT}"})
    assert one.traffic_access_token
    assert one.kill()


@promise("metrics are those of a time")
def _():
    until(lambda: sandbox.get_metrics())
    now = datetime.datetime.now(datetime.timezone.utc)
    minute = datetime.timedelta(minutes=1)
    assert sandbox.get_metrics(start=now - minute, end=now + minute)
    assert not sandbox.get_metrics(start=now - 2 * minute, end=now - minute)


@promise("events tell what they are about where that is asked")
def _():
    sandbox.files.make_dir("w")
    watch = sandbox.files.watch_dir("w", recursive=True, include_entry=True, allow_network_mounts=True)
    sandbox.files.write("w/f", "x")
    events = watch.get_new_events()
    assert any(e.entry and e.entry.path == "/home/user/w/f" and e.entry.owner == "user" for e in events), events
    watch.stop()


@promise("a terminal has a time, a directory and variables of its own")
def _():
    out = []
    terminal = sandbox.pty.create(PtySize(rows=24, cols=80), cwd="/tmp", user="user", envs={"MINE": "here"}, timeout=0)
    sandbox.pty.send_stdin(terminal.pid, b'echo "$MINE:$PWD"; exit 3\n')
    result = None
    try:
        terminal.wait(on_pty=lambda data: out.append(data))
    except SandboxException as error:
        result = error
    assert b"here:/tmp" in b"".join(out) and result.exit_code == 3, (out, result)
    short = sandbox.pty.create(PtySize(rows=24, cols=80), timeout=0.5)
    raises(TimeoutException, short.wait)
    raises(InvalidArgumentException, lambda: sandbox.pty.create(PtySize(rows=24, cols=80), cwd="/nowhere"))


@promise("output that nobody keeps is told as it comes")
def _():
    heard = []
    result = sandbox.commands.run("seq 1000", on_stdout=heard.append, retain_output=False)
    assert "".join(heard).split() == [str(i) for i in range(1, 1001)] and not result.stdout


@promise("a token of MCP is read where a gateway left it")
def _():
    assert sandbox.get_mcp_url() == f"https://{sandbox.get_host(50005)}/mcp"
    raises(FileNotFoundException if tier == "gvisor" else AuthenticationException, sandbox.get_mcp_token)


@promise("the asynchronous client has every way of the other")
async def _():
    one = await AsyncSandbox.create(template, envs={"A": "b"}, metadata={"mark": mark}, timeout=60)
    try:
        assert (await one.get_info()).metadata == {"mark": mark}
        await one.set_timeout(100)
        pages = AsyncSandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=1)
        listed = []
        while pages.has_next:
            listed += await pages.next_items()
        assert {s.sandbox_id for s in listed} == {sandbox.sandbox_id, one.sandbox_id}, listed
        out = []
        terminal = await one.pty.create(PtySize(rows=24, cols=80), on_data=out.append, envs={"MINE": "here"})
        await one.pty.resize(terminal.pid, PtySize(rows=30, cols=100))
        await one.pty.send_stdin(terminal.pid, b"echo $MINE-$A; stty size; exit\n")
        await terminal.wait()
        assert b"here-b" in b"".join(out) and b"30 100" in b"".join(out), out
        await one.files.write_files([{"path": f"f{i}", "data": str(i)} for i in range(3)])
        assert [e.name for e in await one.files.list(".") if e.name.startswith("f")] == ["f0", "f1", "f2"]
        assert (await one.files.rename("f0", "g/f")).path == "/home/user/g/f"
        assert await one.files.exists("g/f") and (await one.files.get_info("g/f")).size == 1
        await one.files.remove("g")
        back = await one.commands.run("sleep 1000", background=True)
        assert back.pid in [p.pid for p in await one.commands.list()]
        again = await one.commands.connect(back.pid)
        assert await again.kill()
        await one.update_network({"deny_out": ["1.1.1.1"]})
        assert await one.is_running()
        await one.pause()
        assert not await one.is_running()
        one = await one.connect(timeout=60)
        assert (await one.commands.run("echo $A")).stdout == "b\n"
        if tier == "gvisor":
            snapshot = await one.create_snapshot()
            from_it = await AsyncSandbox.create(snapshot.snapshot_id)
            assert await from_it.files.exists("f1") and await from_it.kill()
            assert await AsyncSandbox.delete_snapshot(snapshot.snapshot_id)
    finally:
        assert await one.kill()
    try:
        await AsyncSandbox.connect(one.sandbox_id)
        raise AssertionError("a sandbox that was killed is there")
    except NotFoundException:
        pass


sandbox.kill()
done()
