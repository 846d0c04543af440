"""Permits a second of one process: speed.py SECONDS BATCH... Each BATCH is a number of permits a call, or
"echo": the same messages over the same kind of socket at PERMIT_ECHO, answered by a server that echoes."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import paceline  # noqa: E402


def permits(limit, n):
    for p in limit.acquire(n):
        p.accepted()
        done.append(1)


def echo(wire, connection):
    connection.call(wire.call("/v1/acquire", body))
    done.append(1)


body = b'{"limit": "fast", "settle": [{"result": "accepted", "id": "AAAAAAAAAAAAAAAAAAAAAA"}]}'
limit = paceline.Paceline().limit("fast")
for what in sys.argv[2:]:
    if what == "echo":
        wire = paceline._Wire(os.environ["PERMIT_ECHO"], None, None)
        once = lambda w=wire, c=paceline._Connection(wire): echo(w, c)  # noqa: E731
    else:
        once = lambda n=int(what): permits(limit, n)  # noqa: E731
    done = []
    once()
    done.clear()
    began = time.perf_counter()
    end = began + float(sys.argv[1])
    while time.perf_counter() < end:
        once()
    print(what, round(len(done) / (time.perf_counter() - began)), flush=True)
