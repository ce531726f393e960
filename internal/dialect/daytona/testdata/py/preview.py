"""Ports and files from outside: with a token, with a signed URL, with the key, and for everybody."""

import os
import socket
import time
import urllib.error
import urllib.request

from common import kept, same, sandbox

from daytona import Daytona, DaytonaConfig, DaytonaError

SERVER = "mkdir -p /tmp/web/sub; echo inside > /tmp/web/sub/page; cd /tmp/web; exec python3 -m http.server 3000"


def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()}), timeout=60) as res:
            return res.status, res.read().decode()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode()


def listens(box):
    box.process.create_session("web")
    from daytona import SessionExecuteRequest

    box.process.execute_session_command("web", SessionExecuteRequest(command=SERVER, run_async=True))
    for _ in range(600):
        if box.process.exec("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3000))'").exit_code == 0:
            return
        time.sleep(0.1)
    print("BROKEN: nothing listens", flush=True)


with sandbox() as box:
    listens(box)
    link = box.get_preview_link(3000)
    page = link.url + "/sub/page"
    same("the token lets in", get(page, x_daytona_preview_token=link.token), (200, "inside\n"))
    same("the key does", get(page, Authorization="Bearer " + os.environ["DAYTONA_API_KEY"]), (200, "inside\n"))
    same("nobody else", get(page)[0], 401)
    same("no other token", get(page, x_daytona_preview_token=link.token[:-2])[0], 403)
    same("no browser at the server's own host", get(page, x_daytona_preview_token=link.token, Sec_Fetch_Mode="navigate", Sec_Fetch_Site="none")[0], 403)
    same("a token is for one port", get(box.get_preview_link(3001).url, x_daytona_preview_token=link.token)[0], 403)
    kept("a port where nothing listens is told", get(box.get_preview_link(3001).url, x_daytona_preview_token=box.get_preview_link(3001).token)[0] in (502, 503, 504))

    def signed(seconds):
        return box.create_signed_preview_url(3000, expires_in_seconds=seconds)

    at = signed(60)
    here, query = at.url.split("?")
    there = here + "sub/page?" + query
    same("a signed URL lets in", get(there), (200, "inside\n"))
    other = signed(600)
    box.expire_signed_preview_url(3000, at.token)
    same("it can be ended", get(there)[0], 403)
    same("alone", get(there.replace(at.token, other.token)), (200, "inside\n"))
    short = signed(1)
    time.sleep(3)
    same("it ends by itself", get(there.replace(at.token, short.token))[0], 403)
    for what, f in {"too long": lambda: signed(86401), "no port": lambda: box.get_preview_link(0), "no such token": lambda: box.expire_signed_preview_url(3000, "none")}.items():
        try:
            f()
            print("BROKEN: %s is taken" % what, flush=True)
        except DaytonaError:
            kept("%s is refused" % what)

ECHO = """
import base64, hashlib, socket
s = socket.create_server(("127.0.0.1", 3002))
while True:
    c, _ = s.accept()
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        more = c.recv(4096)
        if not more: break
        head += more
    key = [l.split(b": ")[1] for l in head.split(b"\\r\\n") if l.lower().startswith(b"sec-websocket-key")]
    if not key: continue
    accept = base64.b64encode(hashlib.sha1(key[0] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
    c.sendall(c.recv(4096).upper())
    c.close()
"""
with sandbox() as box:
    from daytona import SessionExecuteRequest

    box.fs.upload_file(ECHO.encode(), "/tmp/echo.py")
    box.process.create_session("echo")
    box.process.execute_session_command("echo", SessionExecuteRequest(command="python3 /tmp/echo.py", run_async=True))
    while box.process.exec("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3002))'").exit_code:
        pass
    at = box.get_preview_link(3002)
    host, path = at.url.removeprefix("http://").split("/", 1)
    with socket.create_connection(tuple(host.split(":"))) as c:
        c.settimeout(60)
        c.sendall(("GET /%s/ HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nx-daytona-preview-token: %s\r\n\r\n" % (path, host, at.token)).encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += c.recv(4096)
        c.sendall(b"both ways")
        while more := c.recv(4096):
            got += more
    same("a WebSocket", (got.split(b" ")[1], got.split(b"\r\n\r\n")[1]), (b"101", b"BOTH WAYS"))

with sandbox(public=True) as box:
    listens(box)
    same("a public one is for everybody", get(box.get_preview_link(3000).url + "/sub/page"), (200, "inside\n"))

with sandbox() as box:
    box.fs.upload_file(b"content", "a b/\u00fc")
    down = box.download_url("a b/\u00fc")
    same("a signed download", get(down), (200, "content"))
    same("it is for one file", get(down.replace("a+b", "a+c"))[0], 401)
    same("and no longer than it says", get(down.replace("expires=", "expires=9"))[0], 401)
    short = box.download_url("a b/\u00fc", ttl_seconds=1)
    ever = box.download_url("a b/\u00fc", ttl_seconds=0)
    time.sleep(2)
    same("it ends", get(short)[0], 401)
    same("or never", get(ever), (200, "content"))

    def post(url, data):
        form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + data + b"\r\n--x--\r\n"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=form, headers={"Content-Type": "multipart/form-data; boundary=x"}), timeout=60) as res:
                return res.status
        except urllib.error.HTTPError as err:
            return err.code

    same("a signed upload", (post(box.upload_url("new"), b"uploaded"), box.fs.download_file("new")), (200, b"uploaded"))
    same("a download's signature writes nothing", post(down.replace("/download?", "/upload-v2?"), b"x"), 401)
    box.rotate_signing_key()
    same("another key ends them", get(ever)[0], 401)
    same("and signs new ones", get(box.download_url("new")), (200, "uploaded"))
