import os

from common import kept, raises, same, sandbox

from daytona import FileDownloadRequest, FileUpload
from daytona.common.errors import DaytonaFileNotFoundError, DaytonaNotFoundError

with sandbox() as box:
    f, p = box.fs, box.process
    every = bytes(range(256)) * 10
    f.upload_file(every, "a/b/every.bin")
    same("every byte", f.download_file("a/b/every.bin"), every)
    f.upload_file(b"", "empty")
    same("an empty file", f.download_file("empty"), b"")
    name = "a b/ü \"q\" $x;.txt"
    f.upload_file(b"named", name)
    same("a name of all kinds", f.download_file(name), b"named")
    large = os.urandom(20 << 20)
    f.upload_file(large, "large")
    kept("20 MiB both ways", f.download_file("large") == large)
    f.upload_files([FileUpload(source=b"1", destination="many/1"), FileUpload(source=b"2", destination="many/2")])
    got = f.download_files([FileDownloadRequest(source="many/1"), FileDownloadRequest(source="many/none"), FileDownloadRequest(source="many/2")])
    same("many at once", [g.result for g in got], [b"1", None, b"2"])
    kept("what is missing is told", bool(got[1].error))
    raises("a missing file", DaytonaFileNotFoundError, lambda: f.download_file("none"))
    raises("its class", DaytonaNotFoundError, lambda: f.get_file_info("none"))
    f.create_folder("dir/sub", "750")
    i = f.get_file_info("dir/sub")
    same("a folder", (i.is_dir, i.permissions, i.name), (True, "0750", "sub"))
    same("a list", sorted(x.name for x in f.list_files("many")), ["1", "2"])
    f.set_file_permissions("many/1", mode="600")
    same("permissions", f.get_file_info("many/1").permissions, "0600")
    f.move_files("many/1", "many/moved")
    same("moved", sorted(x.name for x in f.list_files("many")), ["2", "moved"])
    f.upload_file(b"one\ntwo needle\nthree\n", "text/x.txt")
    same("found in files", [(m.file.endswith("/text/x.txt"), m.line, m.content) for m in f.find_files("text", "needle")], [(True, 2, "two needle")])
    kept("found by name", [x.endswith("/text/x.txt") for x in f.search_files("text", "*.txt").files] == [True])
    r = f.replace_in_files(["text/x.txt", "text/none"], "needle", "pin")
    same("replaced", ([x.success for x in r], f.download_file("text/x.txt")), ([True, False], b"one\ntwo pin\nthree\n"))
    p.exec("ln -s x.txt text/link")
    f.upload_file(b"through", "text/link")
    same("written through a link", (f.download_file("text/x.txt"), p.exec("readlink text/link").result), (b"through", "x.txt\n"))
    same("nothing is left of uploads", p.exec("find . -name '.paddock*'").result, "")
    f.delete_file("text/x.txt")
    raises("removed", DaytonaNotFoundError, lambda: f.get_file_info("text/x.txt"))
    f.delete_file("many", recursive=True)
    raises("removed with all", DaytonaNotFoundError, lambda: f.list_files("many"))
