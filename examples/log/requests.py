"""Writes requests.log, a web server's log of 300,000 lines (26 MB), always the same."""

import os

state = 42


def pick(items):
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return items[(state >> 16) % len(items)]


methods = ["GET"] * 8 + ["POST", "PUT"]
paths = ["/", "/login", "/api/orders", "/api/orders/{}", "/api/users/{}", "/static/app.js", "/search?q={}"]
statuses = [200] * 40 + [301, 404, 404, 500, 503]

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests.log"), "w") as f:
    for i in range(300_000):
        path = pick(paths).format(pick(range(1000)))
        f.write(
            f"10.{pick(range(4))}.{pick(range(256))}.{pick(range(256))} - - "
            f"[12/Nov/2026:{i // 12500:02}:{i // 209 % 60:02}:{i % 60:02} +0000] "
            f'"{pick(methods)} {path} HTTP/1.1" {pick(statuses)} {pick(range(50000))} {pick(range(900))}ms\n'
        )
