"""Sends to a strict server by permits: strict.py URL LIMIT SECONDS THREADS FIRST_ID. Prints how many were
answered by each status."""

import collections
import http.client
import itertools
import os
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from paceline import Paceline  # noqa: E402

url, name, seconds, threads, first = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
limit, ids, said = Paceline(daemon_wait=60).limit(name), itertools.count(first), collections.Counter()
end = time.monotonic() + seconds
host = urllib.parse.urlsplit(url).netloc


def work():
    c = http.client.HTTPConnection(host)
    c.connect()
    while time.monotonic() < end:
        with limit() as permit:
            if not permit.fresh():
                permit.unsent()
                continue
            c.request("GET", "/?id=%d" % next(ids))
            answer = c.getresponse()
            body = answer.read()
            permit.answered(answer.status, answer.getheaders(), body if answer.status >= 400 else b"")
            said[answer.status] += 1


all = [threading.Thread(target=work) for _ in range(threads)]
for t in all:
    t.start()
for t in all:
    t.join()
print(dict(said))
