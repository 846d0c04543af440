"""Tests against a real daemon: go test ./cmd/paceline -run TestPython. PACELINE_SOCKET is its socket, with
limits fast=100000/s, pair=2/h, hour=1/h, held=1/h, left=1/h, answers=100000/s and http=100000/s."""

import ast
import asyncio
import http.server
import importlib
import inspect
import os
import signal
import sys
import threading
import time
import typing
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import paceline  # noqa: E402
from paceline import Away, Limit, Paceline, Refused  # noqa: E402


def counts(p):
    """How many requests have ended in each way, once nothing is in flight but held."""
    p.flush()
    said = p.limits()
    return {k: said[k] for k in ("accepted", "limited", "failed", "unknown", "unsent")}


def more(p, before):
    """What ended since."""
    now = counts(p)
    return {k: now[k] - before[k] for k in now if now[k] != before[k]}


class Ends(unittest.TestCase):
    def setUp(self):
        self.p = Paceline(client=self.id())
        self.fast = self.p.limit("fast")
        self.before = counts(self.p)

    def test_block(self):
        with self.fast() as permit:
            self.assertTrue(permit.fresh())
            self.assertFalse(permit.settled)
        self.assertTrue(permit.settled)
        with self.assertRaises(ZeroDivisionError), self.fast(tokens=900):
            1 // 0
        with self.fast() as permit:
            permit.unsent()
        self.assertEqual(more(self.p, self.before), {"accepted": 1, "unknown": 1, "unsent": 1})

    def test_reports(self):
        for end, said in (("accepted", "accepted"), ("refused", "limited"), ("failed", "failed"), ("unknown", "unknown")):
            before = counts(self.p)
            permit, = self.p.limit("answers").acquire()
            getattr(permit.actual(tokens=3), end)()
            permit.failed()  # the first report holds
            self.assertEqual(more(self.p, before), {said: 1})

    def test_decorators(self):
        calls = []

        @self.fast
        def plain(x, *, y):
            """Doc."""
            calls.append((x, y))
            return x + y

        @self.fast(tokens=5)
        async def later(x):
            await asyncio.sleep(0)
            return x

        self.assertEqual(plain(1, y=2), 3)
        self.assertEqual(plain.__doc__, "Doc.")
        self.assertEqual(asyncio.run(later(4)), 4)
        self.assertEqual(more(self.p, self.before), {"accepted": 2})

    def test_batch(self):
        permits = self.fast.acquire(1000)
        self.assertEqual(len({p.id for p in permits}), 1000)
        for p in permits:
            p.accepted()
        self.assertEqual(more(self.p, self.before), {"accepted": 1000})

    def test_batch_together(self):
        """What is settled together is what was not settled before, once."""
        for _ in range(3):
            self.fast.acquire(400).accepted()
        permits = self.fast.acquire(10)
        permits[3].unsent()
        permits[-1].failed()
        self.assertEqual((len(permits), permits[3].settled, permits[4].settled), (10, True, False))
        permits.unknown()
        permits.accepted()
        permits[4].accepted()
        self.assertTrue(all(p.settled for p in permits))
        first = self.fast.acquire(2)
        first.refused(0)
        self.assertTrue(first[0].settled)
        self.assertEqual(more(self.p, self.before), {"accepted": 1200, "unsent": 1, "failed": 1, "unknown": 8, "limited": 2})

    def test_reported_soon(self):
        with self.fast():
            pass
        end = time.monotonic() + 30
        while time.monotonic() < end and self.p.limits()["accepted"] == self.before["accepted"]:
            time.sleep(0.002)
        self.assertEqual(self.p.limits()["accepted"] - self.before["accepted"], 1)

    def test_tasks(self):
        async def one():
            async with self.fast() as permit:
                self.assertTrue(permit.fresh())
                await asyncio.sleep(0.001)

        async def main():
            await asyncio.gather(*[one() for _ in range(50)])

        asyncio.run(main())
        asyncio.run(main())  # another loop has connections of its own
        self.assertEqual(more(self.p, self.before), {"accepted": 100})

    def test_threads(self):
        def work():
            for _ in range(50):
                with self.fast():
                    pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(more(self.p, self.before), {"accepted": 400})


class Waits(unittest.TestCase):
    def setUp(self):
        self.p = Paceline(client=self.id())

    def test_refusals(self):
        pair = self.p.limit("pair")
        with self.assertRaises(Refused) as never:
            pair.acquire(requests=3)
        self.assertEqual((never.exception.kind, never.exception.status), ("never-fits", 413))
        pair.acquire(2)
        with self.assertRaises(Refused) as late:
            with pair(max_wait=5):
                self.fail("it has no permit")
        self.assertEqual((late.exception.kind, late.exception.status), ("wait-too-long", 429))
        with self.assertRaises(Refused) as none:
            self.p.limit("none").acquire()
        self.assertEqual(none.exception.kind, "no-limit")
        with self.assertRaises(TypeError):
            pair(token=1)

    def test_ask(self):
        self.assertEqual(self.p.limit("fast").ask(tokens=9), (0, 0))

    def test_cancelled(self):
        """A task that is cancelled, and a thread that is interrupted, leave the line."""
        left = self.p.limit("left")
        left.acquire()

        async def main():
            task = asyncio.ensure_future(left.acquire_async())
            await self._waiting(1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self._waiting(0)

        asyncio.run(main())

    async def _waiting(self, n):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.p.limits()["waiting"] == n:
                return
            await asyncio.sleep(0.005)
        self.fail("%d wait, want %d" % (self.p.limits()["waiting"], n))

    def test_killed(self):
        """A child that is killed in line has no place any more, and one with a permit no permit."""
        hour = self.p.limit("hour")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            hour.acquire()
            os.write(write, b"x")
            hour.acquire()
            os._exit(0)
        os.read(read, 1)
        asyncio.run(self._waiting(1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        asyncio.run(self._waiting(0))

    def test_away(self):
        with self.assertRaises(Away):
            Paceline("/nonexistent/daemon.sock", daemon_wait=0.1).limit("fast").acquire()
        with self.assertRaises(Away):
            asyncio.run(Paceline("/nonexistent/daemon.sock", daemon_wait=0.1).limit("fast").acquire_async())


class Lives(unittest.TestCase):
    def test_fork(self):
        """A child has connections of its own, and does not settle its parent's permits."""
        p = Paceline(client=self.id())
        fast, before = p.limit("fast"), counts(p)
        with fast():
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with fast() as own:
                        code = 0 if own.fresh() else 2
                    p.flush()
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(more(p, before), {"accepted": 1})
        self.assertEqual(more(p, before), {"accepted": 2})

    def test_renewed(self):
        """What is held is renewed, and what is dropped is not."""
        p = Paceline(client=self.id())
        state, dropped = p._state(), p.limit("fast").acquire()
        permit, = p.limit("fast").acquire()
        batch, parted = p.limit("fast").acquire(3), p.limit("fast").acquire(2)
        one = parted[1]
        del dropped, parted
        for held in state.grants:
            held.renewed -= 5
        p._renew(state)
        self.assertTrue(all(held.renewed > time.monotonic() - 2 for held in state.grants))
        self.assertEqual(sorted(len(held.ids()) for held in state.grants), [1, 1, 3])
        for end in (permit.accepted, batch.accepted, one.accepted):
            end()
        self.assertEqual(list(state.grants), [])

    def test_port(self):
        url, key = os.environ.get("PERMIT_URL"), os.environ.get("PERMIT_KEY")
        p = Paceline(url=url, key=key, client=self.id())
        before = time.monotonic_ns()
        with p.limit("fast")() as permit:
            self.assertTrue(permit.fresh())
            self.assertLessEqual(permit.send_by, time.monotonic_ns() + 1_000_000_000)
            self.assertGreaterEqual(permit.send_by, before + 1_000_000_000)
        with self.assertRaises(Refused) as other:
            Paceline(url=url, key="another key").limit("fast").acquire()
        self.assertEqual(other.exception.kind, "no-key")


class Slow(http.server.BaseHTTPRequestHandler):
    """A daemon that answers a report only after a while."""

    protocol_version, arrived, answers = "HTTP/1.1", threading.Event(), threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"permits":["one"],"send_within_ms":1000,"ttl_ms":10000,"waited_ms":0}'
        if self.path.startswith("/v1/settle"):
            Slow.arrived.set()
            Slow.answers.wait()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Flush(unittest.TestCase):
    def test_waits(self):
        """A report that is under way in the background is waited for."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        p = Paceline(url="http://127.0.0.1:%d" % server.server_address[1])
        with p.limit("any")():
            pass
        self.assertTrue(Slow.arrived.wait(30))
        threading.Timer(0.05, Slow.answers.set).start()
        p.flush()
        self.assertTrue(Slow.answers.is_set())


class Refuser(http.server.BaseHTTPRequestHandler):
    """Every second request is refused, for as long as its path says."""

    protocol_version, seen = "HTTP/1.1", 0

    def do_GET(self):
        Refuser.seen += 1
        if self.path == "/move":
            self.send_response(302)
            self.send_header("Location", "/0")
        elif self.path == "/0":
            self.send_response(200)
        else:
            self.send_response(429)
            self.send_header("Retry-After", self.path[1:])
            self.send_header("Set-Cookie", "secret=1")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


class Adapters(unittest.TestCase):
    """Answers settle the permits, and a Retry-After keeps all away."""

    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuser)
        cls.thread = threading.Thread(target=cls.server.serve_forever, daemon=True)
        cls.thread.start()
        cls.url = "http://127.0.0.1:%d" % cls.server.server_address[1]

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        self.p = Paceline(client=self.id())
        self.http = self.p.limit("http")
        self.before = counts(self.p)

    def tearDown(self):
        self.p.flush()

    def paused(self, get):
        """get(url) sends by an adapter: a served request, and one that is refused for a second."""
        self.assertEqual(get(self.url + "/0"), (200, b"ok"))
        self.assertEqual(get(self.url + "/1"), (429, b"ok"))
        self.assertEqual(more(self.p, self.before), {"accepted": 1, "limited": 1})
        began = time.monotonic()
        with self.http():
            self.assertGreater(time.monotonic() - began, 0.5)

    def test_requests(self):
        session = module("requests").Session()
        session.mount("http://", self.http.requests_adapter())

        def get(url):
            answer = session.get(url)
            return answer.status_code, answer.content

        self.paused(get)

    def test_httpx(self):
        httpx = module("httpx")
        with httpx.Client(transport=self.http.httpx_transport()) as client:

            def get(url):
                answer = client.get(url)
                return answer.status_code, answer.content

            self.paused(get)

    def test_httpx_async(self):
        httpx = module("httpx")

        def get(url):
            async def main():
                async with httpx.AsyncClient(transport=self.http.httpx_async_transport()) as client:
                    answer = await client.get(url)
                    return answer.status_code, answer.content

            return asyncio.run(main())

        self.paused(get)

    def test_aiohttp(self):
        aiohttp = module("aiohttp")

        async def main(url):
            async with aiohttp.ClientSession(trace_configs=[self.http.aiohttp_trace()]) as session:
                async with session.get(url) as answer:
                    return answer.status, await answer.read()

        self.paused(lambda url: asyncio.run(main(url)))
        before = counts(self.p)
        self.assertEqual(asyncio.run(main(self.url + "/move")), (200, b"ok"))  # two requests
        self.assertEqual(sum(more(self.p, before).values()), 2)
        with self.assertRaises(aiohttp.ClientConnectorError):
            asyncio.run(main("http://127.0.0.1:1/"))
        self.assertEqual(more(self.p, before).get("unsent"), 1)


class Servers(unittest.TestCase):
    def test_credential(self):
        p = Paceline()
        for key in ("one", "two"):
            limit = p.limit("127.0.0.1:9", credential="Bearer " + key)
            limit.acquire(max_wait=0)[0].accepted()
            with self.assertRaises(Refused) as said:
                limit.acquire(max_wait=0, tokens=3)
            self.assertEqual((said.exception.status, said.exception.kind), (429, "wait-too-long"))

    def test_key(self):
        p = Paceline()
        permits = p.limit("127.0.0.1:8").acquire(5, max_wait=0)
        self.assertEqual(sorted(permit.key for permit in permits), ["K_ONE", "K_TWO"])
        other, = p.limit("fast").acquire()
        self.assertEqual((other.key, other.target), ("", ""))


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest("%s is not installed" % name)


class Types(unittest.TestCase):
    """A part of what mypy --strict finds, which needs no mypy."""

    def test_annotated(self):
        with open(paceline.__file__, encoding="utf-8") as f:
            tree = ast.parse(f.read(), feature_version=(3, 9))
        functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.assertGreater(len(functions), 50)
        for f in functions:
            a = f.args
            bare = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs + [a.vararg, a.kwarg]
                    if x is not None and x.annotation is None and x.arg not in ("self", "cls")]
            self.assertFalse(bare, "line %d: parameters of %s without a type" % (f.lineno, f.name))
            self.assertIsNotNone(f.returns, "line %d: %s has no type of its result" % (f.lineno, f.name))

    def test_names(self):
        """Annotations are texts that nobody evaluates: a wrong name in one shows here."""
        seen = 0
        own = [x for x in vars(paceline).values() if getattr(x, "__module__", "") == "paceline"]
        for x in own + [x for c in own if isinstance(c, type) for x in vars(c).values()]:
            x = x.fget if isinstance(x, property) else getattr(x, "__func__", x)
            if isinstance(x, type) or inspect.isfunction(x):
                typing.get_type_hints(x)
                seen += 1
        self.assertGreater(seen, 50)


if __name__ == "__main__":
    unittest.main()
