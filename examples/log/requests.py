"""Writes a web server's day, always the same: requests.log, 300,000 lines (26 MB),
and payments.jsonl, 60,000 objects (9 MB)."""

import json
import os

state = 42
here = os.path.dirname(os.path.abspath(__file__))


def pick(items):
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return items[(state >> 16) % len(items)]


methods = ["GET"] * 8 + ["POST", "PUT"]
paths = ["/", "/login", "/api/orders", "/api/orders/{}", "/api/users/{}", "/static/app.js", "/search?q={}"]
statuses = [200] * 40 + [301, 404, 404, 500, 503]

with open(os.path.join(here, "requests.log"), "w") as f:
    for i in range(300_000):
        path = pick(paths).format(pick(range(1000)))
        f.write(
            f"10.{pick(range(4))}.{pick(range(256))}.{pick(range(256))} - - "
            f"[12/Nov/2026:{i // 12500:02}:{i // 209 % 60:02}:{i % 60:02} +0000] "
            f'"{pick(methods)} {path} HTTP/1.1" {pick(statuses)} {pick(range(50000))} {pick(range(900))}ms\n'
        )

countries = ["DE", "FR", "AT", "CH", "PL"]
states = ["paid"] * 12 + ["failed", "refunded"]

with open(os.path.join(here, "payments.jsonl"), "w") as f:
    for i in range(60_000):
        f.write(
            json.dumps(
                {
                    "id": i,
                    "at": f"2026-11-12T{i // 2500:02}:{i // 42 % 60:02}:{i % 60:02}Z",
                    "customer": {"name": f"Kundin Nr. {pick(range(900))} \u00fc", "country": pick(countries)},
                    "items": [{"sku": f"A-{pick(range(200))}", "cents": pick(range(9000))} for _ in range(pick([1, 1, 2, 3]))],
                    "state": pick(states),
                },
                ensure_ascii=False,
            )
            + "\n"
        )
