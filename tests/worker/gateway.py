"""An in-memory server of the worker protocol, with the rules of the engine that a worker can observe."""

from collections import deque
from collections.abc import Callable
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from horae.env import SECOND, Env
from horae.errors import SessionEnded
from horae.model.definitions.job import Spec
from horae.model.fleet.protocol import (
    Answer,
    Exchange,
    Grant,
    LogLines,
    Outcome,
    Progress,
    Range,
    Registered,
    Request,
    Started,
)

Place = tuple[UUID, int]  # parcel and index


class Queued(Struct):
    """One item on the queue."""

    spec: Spec
    job: UUID
    parcel: UUID
    index: int
    raw: bytes
    attempt: int = 0
    failures: int = 0


class Held(Struct):
    """One running item with its session and attempt."""

    item: Queued
    channel: int
    n: int


class Gateway:
    """The server of one session. It checks the worker's promises, and stores its reports."""

    def __init__(self, env: Env, timeout: float = 15.0, heartbeat: float = 5.0) -> None:
        self.env = env
        self.timeout, self.heartbeat = int(timeout * SECOND), int(heartbeat * SECOND)
        self.queue: deque[Queued] = deque()
        self.running: dict[Place, Held] = {}
        self.finished: dict[Place, Outcome] = {}
        self.outcomes: list[Outcome] = []
        self.requests: list[Request] = []
        self.progress: list[Progress] = []
        self.started: list[Started] = []
        self.logs: dict[tuple[UUID, int, int], dict[int, tuple[int, str, str]]] = {}
        self.open: list[list[str]] = []  # unfinished lines, as they were shown
        self.ignored = 0
        self.jobs: dict[str, UUID] = {}
        self.drain = False
        self.is_draining = False
        self.exchanges = 0
        self.session: UUID | None = None
        self._bodies: dict[tuple[int, int], bytes] = {}
        self._seen: dict[int, int] = {}

    # Calls of a test

    def submit(self, spec: Spec, items: list[bytes]) -> UUID:
        """Queue a parcel."""
        parcel = UUID(int=self.env.new_id().int & ~0xFFFF)
        job = self.jobs.setdefault(spec.name, self.env.new_id())
        self.queue.extend(Queued(spec, job, parcel, index, raw) for index, raw in enumerate(items))
        return parcel

    def ask(self, parcel: UUID, index: int, kind: str) -> None:
        """Add a request for a running item."""
        attempt = self.running[parcel, index].item.attempt
        self.requests.append(Request(parcel=parcel, item=index, attempt=attempt, kind=kind))  # type: ignore[arg-type]

    def lose(self) -> None:
        """Expire the session: its running items are queued again."""
        self.session = None
        self.queue.extend(held.item for held in self.running.values())
        self.running.clear()

    def lines(self, parcel: UUID, index: int, stream: str | None = None) -> list[str]:
        """Return the log of an execution, all attempts in order."""
        found = [
            (key[2], seq, line)
            for key, lines in self.logs.items()
            for seq, line in lines.items()
            if key[:2] == (parcel, index)
        ]
        return [text for _, _, (_, name, text) in sorted(found) if stream in (None, name)]

    # Calls of the protocol

    def register(self) -> Registered:
        self.session = self.env.new_id()
        self._bodies.clear()
        self._seen.clear()
        self.is_draining = False
        self.requests.clear()
        return Registered(
            session_id=self.session,
            namespace="default",
            session_timeout=self.timeout,
            heartbeat=self.heartbeat,
            now=self.env.now(),
        )

    def exchange(self, session: UUID, up: Exchange, patient: bool) -> Answer | None:
        """Settle and claim; return None if it would wait for work (and `patient` lets it)."""
        if session != self.session:
            raise SessionEnded("gone")
        self._check(up)
        self.exchanges += 1
        self.is_draining = self.is_draining or up.draining
        self._note(up)
        ignored = [
            Range(parcel=o.parcel, lo=i, hi=i + 1, attempt=o.attempt) for o in up.outcomes for i in self._settle(o)
        ]
        seen = self._seen.get(up.channel, 0)
        asked = any(request for request in self.requests if (request.parcel, request.item) in self.running)
        if up.n == seen + 1:
            claimed = self._claim(up)
            if not claimed and up.wait and patient and not asked and not self.is_draining and not self.drain:
                return None
            self._seen[up.channel] = up.n
        return self._answer(up, ignored)

    def _check(self, up: Exchange) -> None:
        body = msgspec.json.encode(up)
        assert self._bodies.setdefault((up.channel, up.n), body) == body, "a repeated exchange has another body"
        assert up.n <= self._seen.get(up.channel, 0) + 1, "a number was left out"

    def _settle(self, outcome: Outcome) -> list[int]:
        """Move the overlapping items; return the outcomes without a match."""
        missed = []
        self.outcomes.append(outcome)
        for index in range(outcome.lo, outcome.hi):
            place = (outcome.parcel, index)
            held = self.running.get(place)
            if held is None or held.item.attempt != outcome.attempt:
                missed.append(index)
                continue
            del self.running[place]
            self._move(place, held.item, outcome)
        self.ignored += len(missed)
        return missed

    def _move(self, place: Place, item: Queued, outcome: Outcome) -> None:
        retries = item.spec.retry.retries
        permanent = outcome.error is not None and outcome.error.permanent
        if outcome.outcome in ("released", "suspended"):
            self.queue.append(item)
        elif outcome.outcome == "failed" and item.failures < retries and not permanent:
            item.failures += 1
            self.queue.append(item)
        else:
            assert place not in self.finished, "finished twice"
            self.finished[place] = _one(outcome, place[1])

    def _note(self, up: Exchange) -> None:
        self.progress += up.progress
        self.started += up.started
        for lines in up.logs:
            held = self.running.get((lines.parcel, lines.item))
            if held is None or held.item.attempt != lines.attempt:
                continue  # an item is forgotten after its outcome
            if lines.open is not None:
                self.open.append([text for _, _, text in lines.open])
            known = self.logs.setdefault((lines.parcel, lines.item, lines.attempt), {})
            self._number(known, lines)

    @staticmethod
    def _number(known: dict[int, tuple[int, str, str]], lines: LogLines) -> None:
        for seq, line in enumerate(lines.lines, lines.seq):
            assert known.setdefault(seq, line) == line, "one number, two lines"

    def _claim(self, up: Exchange) -> bool:
        if self.is_draining:
            return False
        free, prefetch = up.free, dict(up.prefetch)
        rest: deque[Queued] = deque()
        found = False
        while self.queue:
            item = self.queue.popleft()
            if free > 0:
                free -= 1
            elif prefetch.get(item.job, 0) > 0:
                prefetch[item.job] -= 1
            else:
                rest.append(item)
                if not any(prefetch.values()):
                    rest.extend(self.queue)
                    self.queue.clear()
                continue
            item.attempt += 1
            self.running[item.parcel, item.index] = Held(item, up.channel, up.n)
            found = True
        self.queue = rest
        return found

    def _answer(self, up: Exchange, ignored: list[Range]) -> Answer:
        stamped = [held.item for held in self.running.values() if (held.channel, held.n) == (up.channel, up.n)]
        return Answer(
            slices=_grants(stamped, self.env),
            jobs={f"{item.job}:1": Raw(msgspec.json.encode(item.spec)) for item in stamped},
            requests=[r for r in self.requests if (r.parcel, r.item) in self.running],
            ignored=ignored,
            drain=self.drain,
            now=self.env.now(),
        )


def _one(outcome: Outcome, index: int) -> Outcome:
    """Return the part of an outcome that concerns one item."""
    cut = slice(index - outcome.lo, index - outcome.lo + 1)
    return msgspec.structs.replace(outcome, lo=index, hi=index + 1, results=outcome.results[cut])


def _grants(items: list[Queued], env: Env) -> list[Grant]:
    """Yield neighbours of one parcel and attempt as one slice."""
    items = sorted(items, key=lambda item: (item.parcel, item.attempt, item.failures, item.index))
    groups: list[list[Queued]] = []
    for item in items:
        last = groups[-1][-1] if groups else None
        joined = last is not None and (last.parcel, last.attempt, last.failures, last.index + 1) == (
            item.parcel,
            item.attempt,
            item.failures,
            item.index,
        )
        groups[-1].append(item) if joined else groups.append([item])
    return [_grant(group, env) for group in groups]


def _grant(group: list[Queued], env: Env) -> Grant:
    first = group[0]
    return Grant(
        parcel=first.parcel,
        lo=first.index,
        hi=first.index + len(group),
        job=first.job,
        version=1,
        attempt=first.attempt,
        token=(1 << 32) + first.attempt,
        failures=first.failures,
        due_at=env.now(),
        items=[Raw(item.raw) for item in group],
    )


def parameters(count: int, make: Callable[[int], object] = lambda i: {"i": i}) -> list[bytes]:
    """Return numbered items."""
    return [msgspec.json.encode(make(i)) for i in range(count)]
