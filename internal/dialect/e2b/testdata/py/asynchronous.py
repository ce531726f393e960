"""The asynchronous client."""
import asyncio
import os

from e2b import AsyncSandbox, FilesystemEventType
from promise import done, promise


@promise("the asynchronous client runs, feeds, watches and transfers")
async def _():
    sandbox = await AsyncSandbox.create(os.environ["TEMPLATE"])
    all_of_them = await asyncio.gather(*[sandbox.commands.run(f"echo {i}") for i in range(20)])
    assert [r.stdout for r in all_of_them] == [f"{i}\n" for i in range(20)]
    command = await sandbox.commands.run("cat", background=True, stdin=True)
    await sandbox.commands.send_stdin(command.pid, "hi")
    await sandbox.commands.close_stdin(command.pid)
    assert (await command.wait()).stdout == "hi"
    came = asyncio.Event()

    def seen(event):
        if event.type == FilesystemEventType.WRITE and event.name == "f":
            came.set()

    await sandbox.files.make_dir("w")
    watch = await sandbox.files.watch_dir("w", on_event=seen)
    await sandbox.files.write("w/f", b"x" * 1_000_000)
    await asyncio.wait_for(came.wait(), 60)
    await watch.stop()
    assert len(await sandbox.files.read("w/f", format="bytes")) == 1_000_000
    await sandbox.kill()


done()
