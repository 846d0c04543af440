"""Permits a second of one process: speed.py SECONDS BATCH... Each BATCH is a number of permits a call, which are
settled together; "each:100": by themselves; or "echo": the same messages over the same kind of socket at PERMIT_ECHO,
answered by a server that echoes. It prints for each: permits a second, and the CPU time of a permit in microseconds, of
this process and of the daemon, whose process is PERMIT_DAEMON."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import paceline  # noqa: E402


def together(limit, n):
    permits = limit.acquire(n)
    permits.accepted()
    return len(permits)


def each(limit, n):
    permits = limit.acquire(n)
    for p in permits:
        p.accepted()
    return len(permits)


def echo(wire, connection):
    connection.call(wire.call("/v1/acquire", body))
    return 1


def cpu():
    """The CPU time of this process and of the daemon, in s."""
    with open("/proc/%s/stat" % os.environ["PERMIT_DAEMON"]) as f:
        fields = f.read().rpartition(")")[2].split()
    return time.process_time(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


body = b'{"limit": "fast", "settle": [{"result": "accepted", "id": "AAAAAAAAAAAAAAAAAAAAAAAA"}]}'
limit = paceline.Paceline().limit("fast")
for what in sys.argv[2:]:
    if what == "echo":
        wire = paceline._Wire(os.environ["PERMIT_ECHO"], None, None)
        once = lambda w=wire, c=paceline._Connection(wire): echo(w, c)  # noqa: E731
    else:
        way, _, n = what.rpartition(":")
        once = lambda f=each if way else together, n=int(n): f(limit, n)  # noqa: E731
    once()
    done = 0
    before = cpu()
    began = time.perf_counter()
    end = began + float(sys.argv[1])
    while time.perf_counter() < end:
        done += once()
    rate = done / (time.perf_counter() - began)
    mine, its = ((now - then) / done * 1e6 for now, then in zip(cpu(), before))
    print(what, round(rate), round(mine, 3), round(its, 3), flush=True)
