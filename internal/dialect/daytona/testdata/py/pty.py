import os

from common import kept, raises, same, sandbox

from daytona import DaytonaNotFoundError
from daytona.common.pty import PtySize

if os.environ["TIER"] == "sim":
    kept("the tier sim has no terminal of this kind")
    raise SystemExit

with sandbox() as box:
    p = box.process
    h = p.create_pty_session(id="one", pty_size=PtySize(rows=30, cols=100), envs={"MINE": "a b"})
    h.wait_for_connection()
    info = p.get_pty_session_info("one")
    same("its size", (info.rows, info.cols, info.active), (30, 100, True))
    second = p.connect_pty_session("one")
    second.wait_for_connection()
    p.resize_pty_session("one", PtySize(rows=40, cols=120))
    h.send_input('echo "<$MINE>"; stty size; exit 4\n')
    seen = bytearray()
    result = h.wait(on_data=seen.extend)
    text = seen.decode(errors="replace")
    kept("what it shows", "<a b>" in text and "40 120" in text)
    same("its exit", result.exit_code, 4)
    other = bytearray()
    second.wait(on_data=other.extend)
    kept("a second client sees it too", "<a b>" in other.decode(errors="replace"))
    raises("an ended one is not there", DaytonaNotFoundError, lambda: p.get_pty_session_info("one"))
    h = p.create_pty_session(id="two")
    h.wait_for_connection()
    same("it is listed", [x.id for x in p.list_pty_sessions()], ["two"])
    p.kill_pty_session("two")
    kept("killed", h.wait().exit_code != 0)
