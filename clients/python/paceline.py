"""Permits of ``paceline daemon``: leave to send, for what a proxy cannot hold.

    from paceline import Paceline

    orders = Paceline().limit("orders")

    @orders
    def place(order): ...                       # each call is one request

    with orders(tokens=900) as permit:          # the cost, beside one request
        answer = send()
        permit.answered(answer.status, answer.headers, answer.body)

    async with orders() as permit: ...

A permit counts in full from its grant until it is settled. A block that ends settles it as accepted, and
one that raises as unknown. Nothing is granted without the daemon: it is waited for, for 30 s.

One file, no dependencies, Python 3.9 and later. All of it may be used by many threads and tasks, and after
a fork. https://github.com/paceline-go/paceline/blob/main/docs/permit.md has the calls.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import functools
import importlib
import inspect
import itertools
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.parse
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

__all__ = ["Away", "Limit", "Paceline", "Permit", "Permits", "Refused"]
__version__ = "0.1.0"

_F = TypeVar("_F", bound=Callable[..., Any])
_End = Tuple[List[str], Union[str, Dict[str, Any]]]  # ids, and a result or more about their end
_UNITS = frozenset(("requests", "weight", "orders", "input", "output", "tokens", "money"))
_MOST = 1000  # permits and ids of a call
_MOST_BODY = 64 << 10  # bytes of a refusal's body that are reported
_SOON = 0.005  # s until a settlement goes by itself, if no acquire takes it along
_RETRY = 0.05  # s between looks for a daemon that is away


class Refused(Exception):
    """The daemon refused a permit. kind is a section of docs/permit.md: "wait-too-long", "never-fits"."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.kind: str = str(problem.get("type", "")).rpartition("#")[2]
        self.detail: str = str(problem.get("detail") or "the daemon answers %d" % status)
        self.wait: float = float(problem.get("wait_ms", 0)) / 1000  # s
        self.ahead: int = int(problem.get("ahead", 0))
        super().__init__(self.detail)


class Away(ConnectionError):
    """No daemon came in time. Nothing was granted."""


class _Lost(Exception):
    """A connection ended before its answer."""


def _where() -> str:
    """The path of the daemon's socket."""
    path = os.environ.get("PACELINE_SOCKET")
    if path:
        return path
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(run) and os.path.isdir(run):
        return os.path.join(run, "paceline", "daemon.sock")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", "paceline-%d" % os.getuid(), "daemon.sock")


class _Wire:
    """The address of a daemon, and the form of a call."""

    def __init__(self, path: Optional[str], url: Optional[str], key: Optional[str]) -> None:
        self.path, self.host, self.port = path, "", 0
        fields = ["Host: paceline"]
        if url is not None:
            u = urllib.parse.urlsplit(url)
            if u.scheme != "http" or not u.hostname or not u.port:
                raise ValueError("url %r, expected http://127.0.0.1:PORT" % url)
            self.path, self.host, self.port = None, u.hostname, u.port
            fields = ["Host: %s" % u.netloc]
        if key is not None:
            fields.append("Authorization: Bearer %s" % key)
        self.fields = "\r\n".join(fields)
        begin = "POST %%s HTTP/1.1\r\n%s\r\nContent-Type: application/json\r\nContent-Length: "
        self._begin = (begin % self.fields.replace("%", "%%")).encode("latin-1")
        self.acquires = self._begin % b"/v1/acquire"
        # The daemon's clock is this process's own where both are on one Linux, and its socket is a file.
        self.same_clock = self.path is not None and sys.platform.startswith("linux")

    def call(self, path: str, body: bytes) -> bytes:
        return b"%b%d\r\n\r\n%b" % (self._begin % path.encode("latin-1"), len(body), body)

    def acquire(self, body: bytes) -> bytes:
        """call("/v1/acquire", body), the one that is made again and again."""
        return b"%b%d\r\n\r\n%b" % (self.acquires, len(body), body)

    def get(self, path: str) -> bytes:
        return ("GET %s HTTP/1.1\r\n%s\r\n\r\n" % (path, self.fields)).encode("latin-1")

    def check(self) -> None:
        """Refuses a socket of another user."""
        if self.path is not None and os.lstat(self.path).st_uid != os.getuid():
            raise PermissionError("%s is another user's, expected one of uid %d" % (self.path, os.getuid()))

    def _socket(self) -> Tuple[socket.socket, Any]:
        """A socket, and the address to connect it to."""
        self.check()
        if self.path is not None:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), self.path
        s = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s, (self.host, self.port)

    def open(self) -> socket.socket:
        s, address = self._socket()
        try:
            s.connect(address)
        except BaseException:
            s.close()
            raise
        return s

    async def open_async(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        s, address = self._socket()
        try:
            s.setblocking(False)
            await loop.sock_connect(s, address)
        except BaseException:
            s.close()
            raise
        return s


_decode = json.JSONDecoder().raw_decode  # of a text without blanks around it, as the daemon writes them
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def _head(data: bytes, end: int) -> Tuple[int, int]:
    """The status and the length of an answer whose head ends there."""
    found = _LENGTH.search(data, 0, end + 2)
    if found is None:
        raise _Lost("an answer without a length")
    return int(data[9:12]), int(found.group(1))


class _Connection:
    """A connection of one thread."""

    def __init__(self, wire: _Wire) -> None:
        self.socket = wire.open()

    def __del__(self) -> None:  # its thread has ended
        if hasattr(self, "socket"):
            self.socket.close()

    def call(self, message: bytes) -> Tuple[int, bytes]:
        """Sends a call and returns its answer. After any exception the connection is closed: the daemon
        frees the place of a call that waited."""
        try:
            self.socket.sendall(message)
            data = self.socket.recv(65536)
            end = data.find(b"\r\n\r\n")
            while end < 0:
                more = self.socket.recv(65536)
                if not more:
                    raise _Lost("the daemon hung up")
                data += more
                end = data.find(b"\r\n\r\n")
            status, length = _head(data, end)
            end += 4
            while len(data) < end + length:
                more = self.socket.recv(end + length - len(data))
                if not more:
                    raise _Lost("the daemon hung up")
                data += more
            return status, data[end:]
        except OSError as err:
            self.socket.close()
            raise _Lost(str(err)) from err
        except BaseException:
            self.socket.close()
            raise


class _Held:
    """The permits of one grant: those that are open, when they were renewed, and the deque for their ends."""

    __slots__ = ("of", "state", "client", "send_by", "began", "renewed", "ended", "whole", "open")

    def __init__(self, of: "Paceline", state: "_State", client: str, send_by: int, now: int, ids: List[str]) -> None:
        self.of, self.state, self.client, self.send_by = of, state, client, send_by
        self.began = self.renewed = now  # ns, as send_by
        self.ended = state.ended(client)
        self.whole: Optional[List[str]] = ids  # while nobody has asked for a permit of them
        self.open: Set[str] = set()  # after that

    def ids(self) -> List[str]:
        """Those that are open."""
        whole = self.whole
        return list(self.open) if whole is None else whole

    def part(self) -> None:
        """From now on each permit is settled by itself."""
        with self.state.lock:
            if self.whole is not None:
                self.open, self.whole = set(self.whole), None

    def take(self, id: str) -> bool:
        """Ends a permit; False: it has ended."""
        try:
            self.open.remove(id)
        except KeyError:
            return False
        if not self.open:
            self.state.grants.pop(self, None)
        return True

    def take_all(self) -> List[str]:
        """Ends those that are open."""
        with self.state.lock:
            whole, self.whole = self.whole, None
        if whole is None:
            return [id for id in list(self.open) if self.take(id)]
        self.state.grants.pop(self, None)
        return whole

    def settle(self, ids: List[str], end: Union[str, Dict[str, Any]]) -> None:
        """Reports soon how requests ended, which were taken."""
        if ids:
            self.ended.append((ids, end))
            if not self.state.awake:
                self.of._kick(self.state)


class _State:
    """What a process has; a child of a fork begins anew."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.local = threading.local()
        self.pending: Dict[str, Deque[_End]] = {}  # of each client
        self.grants: Dict[_Held, None] = {}  # with permits that are open: renewed until settled or dropped
        self.wake = threading.Event()
        self.awake = False  # it is set, or its thread is about to look
        self.lock = threading.Lock()
        self.reporting = threading.RLock()  # a signal's handler may flush within a flush
        self.thread: Optional[threading.Thread] = None
        self.idle: Deque[socket.socket] = collections.deque()  # of asyncio, whatever the event loop

    def ended(self, client: str) -> "Deque[_End]":
        """The settlements of a client."""
        found = self.pending.get(client)
        return self.pending.setdefault(client, collections.deque()) if found is None else found


class Paceline:
    """The limits of a daemon.

    socket is the path of its socket; without it, that of this user's daemon. url and key are for a port of
    ``paceline daemon --listen``. client is the name by which turns are shared by weight. daemon_wait is how
    many seconds to wait for a daemon that is away.
    """

    def __init__(self, socket: Optional[str] = None, *, url: Optional[str] = None, key: Optional[str] = None,
                 client: str = "", daemon_wait: float = 30.0) -> None:
        self._wire = _Wire(None if url is not None else socket or _where(), url, key)
        self._client = client
        self._daemon_wait = daemon_wait
        self._now = _State()
        self._ttl = 10.0
        atexit.register(self._end)

    def limit(self, name: str, *, client: Optional[str] = None, credential: Optional[str] = None) -> "Limit":
        """The limit of a name, or that of a server to which ``paceline exec`` leads programs: "api.example.com".
        credential is for a server that tells keys apart: what requests send as the key, such as "Bearer KEY"."""
        return Limit(self, name, self._client if client is None else client, credential)

    def limits(self) -> Dict[str, Any]:
        """The state of all limits."""
        return self._answer(*self._sync(self._state(), self._wire.get("/v1/limits")))

    def flush(self) -> None:
        """Reports all that was settled, and ends once the daemon has it. Without it, reports follow by themselves a
        moment later."""
        state = self._state()
        with state.reporting:  # a report that is under way in the background is waited for
            try:
                for client in list(state.pending):
                    while True:
                        batch = self._take(state, client)
                        if not batch:
                            break
                        self._posted(state, client, "/v1/settle", _settlements(batch), batch)
            except (OSError, _Lost):
                pass  # the daemon takes them as unknown

    def _end(self) -> None:
        """At the end of the process: what is open then ends as unknown."""
        self.flush()
        for c in self._now.idle:
            c.close()

    # -- the state of this process --

    def _state(self) -> _State:
        state = self._now
        if state.pid != os.getpid():
            state = self._now = _State()
        return state

    def _take(self, state: _State, client: str) -> List[_End]:
        """Settlements of a client that are to be reported: as many as one call may be about."""
        ended = state.pending.get(client)
        batch: List[_End] = []
        if not ended:
            return batch
        room = _MOST
        try:
            while ended and room > 0:
                batch.append(ended.popleft())
                room -= len(batch[-1][0])
        except IndexError:
            pass  # another thread took some
        if room < 0:
            ended.appendleft(batch.pop())
        return batch

    def _put_back(self, state: _State, client: str, batch: List[_End]) -> None:
        state.ended(client).extendleft(reversed(batch))

    def _kick(self, state: _State) -> None:
        """Lets the thread in the background report and renew soon."""
        state.awake = True
        if state.thread is None:
            with state.lock:
                if state.thread is None:
                    state.thread = threading.Thread(target=self._background, args=(state,), daemon=True,
                                                    name="paceline")
                    state.thread.start()
        state.wake.set()

    def _background(self, state: _State) -> None:
        while True:
            state.wake.wait(self._ttl / 4)
            state.wake.clear()
            time.sleep(_SOON)
            state.awake = False
            self.flush()
            self._renew(state)

    def _renew(self, state: _State) -> None:
        now = time.monotonic_ns()
        old: Dict[str, List[Tuple[str, _Held]]] = {}
        for held in list(state.grants):
            if now - held.renewed > self._ttl / 4 * 1e9:
                old.setdefault(held.client, []).extend((id, held) for id in held.ids())
        for client, all in old.items():
            for i in range(0, len(all), _MOST):
                part = all[i:i + _MOST]
                try:
                    self._posted(state, client, "/v1/renew", json.dumps([id for id, _ in part]), [])
                except (OSError, _Lost):
                    return
                for _, held in part:
                    held.renewed = now

    def _posted(self, state: _State, client: str, path: str, message: str, batch: List[_End]) -> None:
        """A call without a wait for the daemon."""
        call = self._wire.call(path + "?client=" + urllib.parse.quote(client), message.encode())
        try:
            self._connection(state).call(call)
        except (OSError, _Lost):
            state.local.connection = None
            self._put_back(state, client, batch)
            raise

    def _connection(self, state: _State) -> _Connection:
        c: Optional[_Connection] = getattr(state.local, "connection", None)
        if c is None:
            c = state.local.connection = _Connection(self._wire)
        return c

    # -- calls --

    def _sync(self, state: _State, call: bytes) -> Tuple[int, bytes]:
        """Calls the daemon, and waits for one that is away."""
        seen = time.monotonic()
        while True:
            try:
                c = self._connection(state)
                seen = time.monotonic()
                status, body = c.call(call)
                if status != 503 or b"#stopping" not in body:
                    return status, body
                error: Exception = _Lost("the daemon is stopping")
            except PermissionError:
                raise
            except (OSError, _Lost) as err:
                error = err
            except BaseException:
                state.local.connection = None
                raise
            state.local.connection = None
            self._still(error, seen)
            time.sleep(_RETRY)

    def _still(self, error: Exception, seen: float) -> None:
        if time.monotonic() - seen >= self._daemon_wait:
            raise Away("the daemon is away for %g s, and nothing goes without a permit: %s"
                       % (self._daemon_wait, error)) from error

    async def _async(self, call: bytes) -> Tuple[int, bytes]:
        """_sync for asyncio: each call that waits has a connection."""
        state = self._state()
        loop = asyncio.get_running_loop()
        seen = time.monotonic()
        while True:
            c = None
            try:
                try:
                    c = state.idle.pop()
                except IndexError:
                    c = await self._wire.open_async(loop)
                seen = time.monotonic()
                await loop.sock_sendall(c, call)
                data, end = b"", -1
                while end < 0:
                    data += await self._more(loop, c)
                    end = data.find(b"\r\n\r\n")
                status, length = _head(data, end)
                end += 4
                while len(data) < end + length:
                    data += await self._more(loop, c)
                if status != 503 or b"#stopping" not in data:
                    state.idle.append(c)
                    return status, data[end:]
                error: Exception = _Lost("the daemon is stopping")
            except PermissionError:
                raise
            except (OSError, _Lost) as err:
                error = err
            except BaseException:  # cancelled: the daemon frees the place
                if c is not None:
                    c.close()
                raise
            if c is not None:
                c.close()
            self._still(error, seen)
            await asyncio.sleep(_RETRY)

    @staticmethod
    async def _more(loop: asyncio.AbstractEventLoop, c: socket.socket) -> bytes:
        data = await loop.sock_recv(c, 65536)
        if not data:
            raise _Lost("the daemon hung up")
        return data

    @staticmethod
    def _answer(status: int, body: bytes) -> Dict[str, Any]:
        try:
            said: Dict[str, Any] = _decode(body.decode())[0]
        except ValueError:
            said = {"detail": body.decode("utf-8", "replace").strip()}
        if status != 200:
            raise Refused(status, said)
        return said

    def _acquire_call(self, state: _State, client: str, want: str) -> Tuple[bytes, List[_End]]:
        """A call, and the settlements in it. want is the beginning of its message."""
        batch = self._take(state, client)
        message = '%s,"settle":%s}' % (want, _settlements(batch)) if batch else want + "}"
        return self._wire.acquire(message.encode()), batch

    def _granted(self, state: _State, client: str, began: int, status: int, body: bytes) -> "Permits":
        said = self._answer(status, body)
        if self._wire.same_clock:
            send_by = said["send_by"]
        else:  # from before the call: never too late
            send_by = began + (said["waited_ms"] + said["send_within_ms"]) * 1_000_000
        self._ttl = said["ttl_ms"] / 1000
        if state.thread is None:
            self._kick(state)
        ids = said["permits"]
        held = _Held(self, state, client, send_by, time.monotonic_ns(), ids)
        state.grants[held] = None
        return Permits(held, ids, said.get("keys"), said.get("targets"))


def _settlements(batch: List[_End]) -> str:
    """A batch as JSON: ids that ended alike are together."""
    if len(batch) == 1 and isinstance(batch[0][1], str):
        return '[{"ids":["%s"],"result":"%s"}]' % ('","'.join(batch[0][0]), batch[0][1])
    parts: List[str] = []
    alike: List[str] = []
    ended: Any = None
    for ids, end in batch:
        if end is not ended and alike:
            parts.append('{"ids":["%s"],"result":"%s"}' % ('","'.join(alike), ended))
            alike = []
        ended = end
        if isinstance(end, str):
            alike += ids
        else:
            parts.append(json.dumps(dict(end, ids=ids)))
    if alike:
        parts.append('{"ids":["%s"],"result":"%s"}' % ('","'.join(alike), ended))
    return "[%s]" % ",".join(parts)


class _Settles:
    """What a permit and the permits of one acquire have in common: until when to send, and how to end."""

    __slots__ = ("_held",)
    _held: _Held

    @property
    def send_by(self) -> int:
        return self._held.send_by

    def fresh(self) -> bool:
        """Whether what is permitted may still be sent. Ask right before the send."""
        return time.monotonic_ns() <= self._held.send_by

    def accepted(self) -> None:
        self._settle("accepted")

    def refused(self, retry_after: Optional[float] = None) -> None:
        """The server refused it. retry_after keeps all clients away for so many seconds."""
        self._settle("refused" if retry_after is None else {"result": "refused", "retry_after": retry_after})

    def failed(self) -> None:
        """It failed, and counts."""
        self._settle("failed")

    def unsent(self) -> None:
        """It was not sent, and does not count."""
        self._settle("unsent")

    def unknown(self) -> None:
        """It may have been sent."""
        self._settle("unknown")

    def _settle(self, end: Union[str, Dict[str, Any]]) -> None:
        raise NotImplementedError


class Permit(_Settles):
    """Leave to send one request, until send_by (ns of time.monotonic_ns). Settle it once. key and target are the names
    of the server's key and target in whose limits it counts: the request has to use them. Empty: it has none."""

    __slots__ = ("id", "key", "target", "_actual")

    def __init__(self, id: str, held: _Held, key: str, target: str) -> None:
        self.id, self._held, self.key, self.target = id, held, key, target
        self._actual: Optional[Dict[str, int]] = None

    def __del__(self) -> None:  # dropped: it ends as unknown
        if self.id in self._held.open:
            self._held.take(self.id)

    @property
    def settled(self) -> bool:
        return self.id not in self._held.open

    def answered(self, status: int, headers: Union[Mapping[str, str], Iterable[Tuple[str, str]]] = (),
                 body: Union[bytes, str] = b"") -> None:
        """HTTP answered it: the daemon reads the status, header fields about limits, and a refusal's body."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        said: Dict[str, Any] = {"status": int(status), "took_ms": round((time.monotonic_ns() - self._held.began) / 1e6, 3)}
        fields: Dict[str, List[str]] = {}
        for name, value in pairs:
            if _TOLD.search(name) and not _SECRET.search(name):
                fields.setdefault(name, []).append(value)
        if fields:
            said["header"] = fields
        if body:
            if isinstance(body, bytes):
                body = body[:_MOST_BODY].decode("utf-8", "replace")
            said["body"] = body[:_MOST_BODY]
        self._settle(said)

    def actual(self, **cost: int) -> "Permit":
        """The final cost, which is settled with the end: permit.actual(tokens=412)."""
        self._actual = _checked(cost)
        return self

    def _settle(self, end: Union[str, Dict[str, Any]]) -> None:
        held = self._held
        if self.id not in held.open or not held.take(self.id):
            return  # settled already
        if self._actual is not None:
            end = dict({"result": end} if isinstance(end, str) else end, actual=self._actual)
        held.ended.append(([self.id], end))
        if not held.state.awake:
            held.of._kick(held.state)


class Permits(_Settles, Sequence[Permit]):
    """The permits of one acquire: a list, whose methods settle together those that are not settled yet."""

    __slots__ = ("_ids", "_keys", "_targets", "_all")

    def __init__(self, held: _Held, ids: List[str], keys: Optional[List[str]], targets: Optional[List[str]]) -> None:
        self._held, self._ids, self._keys, self._targets = held, ids, keys, targets
        self._all: Optional[List[Permit]] = None  # once somebody has asked for one

    def __del__(self) -> None:  # dropped: they end as unknown, but for those that somebody has asked for
        if self._held.whole is not None:
            self._held.take_all()

    def __len__(self) -> int:
        return len(self._ids)

    def _each(self) -> List[Permit]:
        if self._all is None:
            held, none = self._held, [""] * len(self._ids)
            held.part()
            self._all = [Permit(*of) for of in zip(self._ids, itertools.repeat(held), self._keys or none, self._targets or none)]
        return self._all

    def __getitem__(self, i: Any) -> Any:
        return self._each()[i]

    def __iter__(self) -> Iterator[Permit]:
        return iter(self._each())

    def _settle(self, end: Union[str, Dict[str, Any]]) -> None:
        self._held.settle(self._held.take_all(), end)


_TOLD = re.compile(r"limit|retry|quota|reset|remaining|^date$|^content-type$", re.IGNORECASE)
_SECRET = re.compile(r"cookie|auth|key|token$|secret", re.IGNORECASE)


def _checked(cost: Mapping[str, int]) -> Dict[str, int]:
    for unit in cost:
        if unit not in _UNITS:
            raise TypeError("%r is no unit of a cost, expected one of %s" % (unit, ", ".join(sorted(_UNITS))))
    return dict(cost)


class Limit:
    """A limit of the daemon. Calling it gives a turn, or makes a function wait for its turn."""

    def __init__(self, of: Paceline, name: str, client: str, credential: Optional[str] = None) -> None:
        self._of, self.name, self.client = of, name, client
        self._base: Dict[str, Any] = {"limit": name, "client": client}
        if credential is not None:
            self._base["credential"] = credential
        self._plain = json.dumps(self._base)[:-1]

    def __call__(self, func: Optional[Callable[..., Any]] = None, /, *, max_wait: Optional[float] = None,
                 **cost: int) -> Any:
        """Without a function, a turn: ``with orders(tokens=900) as permit``, ``async with``, or a decorator. With
        one, ``@orders``, a function each of whose calls is one request. max_wait is in seconds."""
        turn = _Turn(self, max_wait, cost)
        return turn if func is None else turn(func)

    def acquire(self, n: int = 1, *, max_wait: Optional[float] = None, **cost: int) -> Permits:
        """Waits for the first permit, and returns up to n that may go now. Each has this cost."""
        of, want = self._of, self._want(n, max_wait, cost)
        while True:
            state, began = of._state(), time.monotonic_ns()
            call, batch = of._acquire_call(state, self.client, want)
            try:
                permits = of._granted(state, self.client, began, *of._sync(state, call))
            except (OSError, KeyboardInterrupt, SystemExit):
                of._put_back(state, self.client, batch)
                raise
            if permits._held.began <= permits._held.send_by:
                return permits
            permits.unsent()  # this process was stopped meanwhile

    async def acquire_async(self, n: int = 1, *, max_wait: Optional[float] = None, **cost: int) -> Permits:
        """acquire for asyncio. A task that is cancelled leaves the line."""
        of, want = self._of, self._want(n, max_wait, cost)
        while True:
            state, began = of._state(), time.monotonic_ns()
            call, batch = of._acquire_call(state, self.client, want)
            try:
                permits = of._granted(state, self.client, began, *await of._async(call))
            except (OSError, asyncio.CancelledError):
                of._put_back(state, self.client, batch)
                raise
            if permits.fresh():
                return permits
            permits.unsent()

    def ask(self, **cost: int) -> Tuple[float, int]:
        """How many seconds a request of this cost would wait, and how many are before it."""
        query = {"limit": self.name, "client": self.client,
                 "cost": ",".join("%s=%d" % item for item in _checked(cost).items())}
        of = self._of
        said = of._answer(*of._sync(of._state(), of._wire.get("/v1/ask?" + urllib.parse.urlencode(query))))
        return said["wait_ms"] / 1000, said["ahead"]

    def _want(self, n: int, max_wait: Optional[float], cost: Mapping[str, int]) -> str:
        """The beginning of a message."""
        if max_wait is None and not cost:
            return self._plain if n == 1 else '%s,"n":%d' % (self._plain, n)
        want = dict(self._base, n=n)
        if cost:
            want["cost"] = _checked(cost)
        if max_wait is not None:
            want["max_wait"] = max_wait
        return json.dumps(want)[:-1]

    def requests_adapter(self, **options: Any) -> Any:
        """An adapter for requests: ``session.mount("https://", orders.requests_adapter())``."""
        base: Any = importlib.import_module("requests.adapters").HTTPAdapter

        def send(adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            with self() as permit:
                answer = base.send(adapter, request, *args, **kwargs)
                permit.answered(answer.status_code, answer.headers,
                                answer.content if answer.status_code >= 400 else b"")
                return answer

        return type("Adapter", (base,), {"send": send})(**options)

    def httpx_transport(self, inner: Any = None) -> Any:
        """A transport for httpx.Client, over inner or httpx.HTTPTransport()."""
        import httpx

        limit, inner = self, inner or httpx.HTTPTransport()

        class Transport(httpx.BaseTransport):
            def handle_request(self, request: Any) -> Any:
                with limit() as permit:
                    answer = inner.handle_request(request)
                    body = answer.read() if answer.status_code >= 400 else b""
                    permit.answered(answer.status_code, answer.headers.multi_items(), body)
                    return answer

            def close(self) -> None:
                inner.close()

        return Transport()

    def httpx_async_transport(self, inner: Any = None) -> Any:
        """A transport for httpx.AsyncClient, over inner or httpx.AsyncHTTPTransport()."""
        import httpx

        limit, inner = self, inner or httpx.AsyncHTTPTransport()

        class Transport(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: Any) -> Any:
                async with limit() as permit:
                    answer = await inner.handle_async_request(request)
                    body = await answer.aread() if answer.status_code >= 400 else b""
                    permit.answered(answer.status_code, answer.headers.multi_items(), body)
                    return answer

            async def aclose(self) -> None:
                await inner.aclose()

        return Transport()

    def aiohttp_trace(self) -> Any:
        """For aiohttp: ``ClientSession(trace_configs=[orders.aiohttp_trace()])``. Each redirect has its own
        permit."""
        import aiohttp

        async def begin(_session: Any, context: Any, _params: Any) -> None:
            context.permit = (await self.acquire_async())[0]

        async def end(_session: Any, context: Any, params: Any) -> None:
            body = await params.response.read() if params.response.status >= 400 else b""
            context.permit.answered(params.response.status, params.response.headers.items(), body)

        async def redirect(session: Any, context: Any, params: Any) -> None:
            context.permit.answered(params.response.status, params.response.headers.items())
            await begin(session, context, params)

        async def fail(_session: Any, context: Any, params: Any) -> None:
            permit = getattr(context, "permit", None)
            if permit is not None:
                permit.unsent() if isinstance(params.exception, aiohttp.ClientConnectorError) else permit.unknown()

        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(begin)
        trace.on_request_end.append(end)
        trace.on_request_redirect.append(redirect)
        trace.on_request_exception.append(fail)
        return trace


class _Turn:
    """A turn at a limit: a context manager for threads and for tasks, and a decorator."""

    def __init__(self, limit: Limit, max_wait: Optional[float], cost: Dict[str, int]) -> None:
        self._limit, self._max_wait, self._cost = limit, max_wait, _checked(cost)
        self._permit: Optional[Permit] = None

    def __call__(self, func: _F) -> _F:
        turn = functools.partial(_Turn, self._limit, self._max_wait, self._cost)
        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def waits(*args: Any, **kwargs: Any) -> Any:
                async with turn():
                    return await func(*args, **kwargs)

        else:

            @functools.wraps(func)
            def waits(*args: Any, **kwargs: Any) -> Any:
                with turn():
                    return func(*args, **kwargs)

        return waits  # type: ignore[return-value]

    def __enter__(self) -> Permit:
        permit: Permit = self._limit.acquire(max_wait=self._max_wait, **self._cost)[0]
        self._permit = permit
        return permit

    async def __aenter__(self) -> Permit:
        permit: Permit = (await self._limit.acquire_async(max_wait=self._max_wait, **self._cost))[0]
        self._permit = permit
        return permit

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            permit.accepted() if kind is None else permit.unknown()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.__exit__(kind, error, trace)
