"""Looks for a key in all that a command in a box can read: environments, memory and files. It is given as base64, so
that no file or argument holds it. That it can find something at all, a placeholder in the same places shows."""
import base64
import json
import os
import sys

variable, key = sys.argv[1].encode(), base64.b64decode(sys.argv[2])
own = str(os.getpid())
found = {"key": [], "placeholder": [], "refused": 0, "memory": 0}


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read(64 << 20)
    except OSError:
        found["refused"] += 1
        return b""


processes = [p for p in os.listdir("/proc") if p.isdigit() and p != own]
placeholder = b""
for p in processes:
    environment = read("/proc/" + p + "/environ")
    for pair in environment.split(b"\0"):
        name, _, value = pair.partition(b"=")
        if name == variable and value:
            placeholder = value


def look(where, data):
    if key in data:
        found["key"].append(where)
    if placeholder and placeholder in data:
        found["placeholder"].append(where)


for p in processes:
    for name in ("environ", "cmdline"):
        look("/proc/" + p + "/" + name, read("/proc/" + p + "/" + name))
    regions, wanted = [], None
    for line in read("/proc/" + p + "/smaps").decode(errors="replace").splitlines():
        first = line.split(" ", 1)[0]
        if "-" in first and not first.endswith(":"):
            begin, end = (int(n, 16) for n in first.split("-"))
            wanted = (begin, end) if line.split()[1].startswith("rw") else None
        elif wanted and line.startswith("Rss:"):
            if int(line.split()[1]) > 0:
                regions.append(wanted)
            wanted = None
    try:
        memory = os.open("/proc/" + p + "/mem", os.O_RDONLY)
    except OSError:
        found["refused"] += 1
        continue
    for begin, end in regions:
        at, tail = begin, b""
        while at < end:
            try:
                data = os.pread(memory, min(1 << 20, end - at), at)
            except (OSError, OverflowError):
                at += 1 << 20
                continue
            if not data:
                break
            found["memory"] += len(data)
            look("/proc/" + p + "/mem", tail + data)
            at, tail = at + len(data), data[-256:]
    os.close(memory)

for top in (os.path.expanduser("~"), os.getcwd(), "/tmp", "/var/tmp", "/run", "/dev/shm"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                look(path, read(path))
json.dump({k: sorted(set(v)) if isinstance(v, list) else v for k, v in found.items()}, sys.stdout)
