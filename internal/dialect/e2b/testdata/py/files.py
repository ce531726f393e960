"""Every method of files, in every form."""
import io
import json
import os
import urllib.error
import urllib.request

from e2b import AuthenticationException, FilesystemEventType, FileType, InvalidArgumentException, NotFoundException, Sandbox, SandboxException
from promise import done, promise, raises, until

sandbox = Sandbox.create(os.environ["TEMPLATE"])
commands, files = sandbox.commands, sandbox.files


@promise("a file is written in every form and read in every form")
def _():
    info = files.write("a.txt", "This")
    assert (info.name, info.type, info.path) == ("a.txt", FileType.FILE, "/home/user/a.txt"), info
    assert files.read("a.txt") == "This"
    assert bytes(files.read("a.txt", format="bytes")) == b"This"
    assert b"".join(files.read("a.txt", format="stream")) == b"This"
    for data, want in (("", b""), (b"\0\1\xff", b"\0\1\xff"), (io.BytesIO(b"stream"), b"stream")):
        files.write("deep/er/file", data)
        assert bytes(files.read("deep/er/file", format="bytes")) == want
    files.write("packed", "gz" * 10_000, gzip=True)
    assert files.read("packed", gzip=True) == "gz" * 10_000
    files.write("raw", "raw", use_octet_stream=True)
    assert files.read("raw") == "raw"
    many = files.write_files([{"path": f"many{i}", "data": f"file {i}"} for i in range(10)])
    assert [files.read(one.path) for one in many] == [f"file {i}" for i in range(10)]


@promise("what is wrong with a file is told by its exception")
def _():
    assert "path '/home/user/nope' does not exist" in str(raises(NotFoundException, lambda: files.read("nope")))
    raises(InvalidArgumentException, lambda: files.read("deep"))
    raises(AuthenticationException, lambda: files.read("a.txt", user="zork"))
    raises(NotFoundException, lambda: files.get_info("nope"))
    raises(NotFoundException, lambda: files.list("nope"))
    raises(InvalidArgumentException, lambda: files.list("a.txt"))
    raises(NotFoundException, lambda: files.rename("nope", "other"))
    raises(InvalidArgumentException, lambda: files.make_dir("a.txt"))
    raises(NotFoundException, lambda: files.watch_dir("nope"))
    raises(SandboxException, lambda: files.watch_dir("a.txt"))


@promise("files are described, made, moved, listed and removed")
def _():
    file = files.get_info("a.txt")
    assert (file.size, file.mode, file.permissions, file.owner, file.group, file.symlink_target) == (4, 0o644, "-rw-r--r--", "user", "user", None), file
    commands.run("ln -s a.txt link")
    assert files.get_info("link").symlink_target == "/home/user/a.txt"
    assert files.make_dir("x/y") and not files.make_dir("x/y")
    files.write("one", "1")
    assert files.rename("one", "new/dir/two").path == "/home/user/new/dir/two"
    assert not files.exists("one") and files.exists("new/dir/two")
    commands.run("mkdir -p ls/s1/a ls/s2 ls/s10; touch ls/file")
    assert [e.path for e in files.list("ls", depth=2)] == [f"/home/user/ls/{n}" for n in ("file", "s1", "s1/a", "s10", "s2")]
    files.remove("new")
    files.remove("new")
    assert not files.exists("new")


@promise("what is told of a file stays with it until it is written anew")
def _():
    told = {"author": "mish"}
    assert files.write("told", "x", metadata=told).metadata == told
    assert files.get_info("told").metadata == told
    assert files.rename("told", "still").metadata == told
    files.write("still", "y")
    assert files.get_info("still").metadata is None


@promise("events are there when what made them has answered")
def _():
    files.make_dir("w")
    watch = files.watch_dir("w", recursive=True)
    files.write("w/f", "x")
    kinds = [e.type for e in watch.get_new_events()]
    assert kinds == [FilesystemEventType.CREATE, FilesystemEventType.CHMOD, FilesystemEventType.WRITE], kinds
    files.write("w/f", "y")
    assert watch.get_new_events()[0].type == FilesystemEventType.WRITE
    files.make_dir("w/n")
    files.write("w/n/f", "x")
    seen = [(e.type, e.name) for e in watch.get_new_events()]
    assert (FilesystemEventType.CREATE, "n") in seen, seen
    watch.stop()


@promise("a signed address reads or writes one file, for its time")
def _():
    with urllib.request.urlopen(sandbox.download_url("a.txt", "user", 60)) as answer:
        assert answer.read() == b"This"
    error = raises(urllib.error.HTTPError, lambda: urllib.request.urlopen(sandbox.download_url("a.txt", "user", -120)))
    assert (error.code, json.loads(error.read())) == (401, {"code": 401, "message": "signature is already expired"}), error


until(sandbox.is_running)
sandbox.kill()
done()
