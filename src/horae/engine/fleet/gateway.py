"""The gateway: sessions, and the exchanges by which workers get work and report it.

Outcomes of an exchange are committed at once, together with those of other sessions. Work that can be claimed is
claimed in the same transaction. Otherwise the exchange is parked, and the server claims once for all parked exchanges
when a lane receives something.
"""

import hashlib
from collections.abc import Sequence
from uuid import UUID

import msgspec
from msgspec import structs

from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.base.hints import Hint, Hints
from horae.engine.base.lookup import Lookup
from horae.engine.batcher import Batcher, fail_together
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.durable_steps import DurableSteps, not_held
from horae.engine.executions.outcomes import Outcomes
from horae.engine.executions.resolver import check_key
from horae.engine.executions.submitter import Submitter
from horae.engine.fleet.answers import AnswerBuilder
from horae.engine.fleet.hand_backs import HandBacks
from horae.engine.fleet.parking import ParkingLot
from horae.engine.fleet.parking_spots import ParkedExchange
from horae.engine.fleet.protocol_checks import check_exchange, check_presence
from horae.engine.fleet.session_cache import CachedSession, SessionCache
from horae.engine.settings import DAY, EngineSettings
from horae.env import SECOND, Env, Instant
from horae.errors import (
    Busy,
    ExchangeNumber,
    HoraeError,
    KeyReused,
    NotFound,
    OverQuota,
    SessionDetached,
    SessionEnded,
)
from horae.model.base.buckets import Buckets
from horae.model.base.ids import execution_id
from horae.model.executions.slice import RunningSlice
from horae.model.executions.submission import Idempotency, Receipt
from horae.model.fleet.deal import capacity
from horae.model.fleet.protocol import Exchange, Range, Reattach, Reattached, Register, Registered, Request
from horae.model.fleet.submit import ChildSubmit, Submit
from horae.store.contract import Store
from horae.store.executions.durable import steps
from horae.store.executions.leaving.report import StopRequest
from horae.store.executions.log_lines import LIMIT_FACTOR, pack_all
from horae.store.fleet import sessions
from horae.store.fleet.exchange import IncomingExchange, Reply, is_quiet, want_of
from horae.store.fleet.reattach import reattach

CROWD = 32  # from this many parked exchanges on, waits end together, so that one transaction answers many of them
TOGETHER = 0.1  # seconds: the ends of waits are then rounded down to a multiple of this
KNOWN_FOR = 7 * DAY  # how long a repeated call of an execution finds the children that the first call submitted
CALL_KNOWN_FOR = DAY // 12  # how long a repeated call is refused if it names other jobs than the first
MOST_READ = 512  # sessions that one statement reads
FIRST_WAIT = (0.1, 0.5)  # a session from another server first waits only a random part of its wait, within these bounds


def _ended() -> SessionEnded:
    remedy = "Stop its executions and register anew, because other workers run the executions now."
    return SessionEnded("This session is not live.", remedy)


def _detached() -> SessionDetached:
    remedy = "Send what it holds to POST /api/v1/sessions/{id}/reattach; its executions continue."
    return SessionDetached("The store has failed over since this session's last exchange.", remedy)


class Gateway:
    """Registers workers and answers their exchanges."""

    def __init__(
        self,
        env: Env,
        store: Store,
        directory: LocalDirectory,
        hints: Hints,
        settings: EngineSettings,
        outcomes: Outcomes,
        seals: ExecutionSealer,
        submitter: Submitter,
        sessions: SessionCache,
        parking_lot: ParkingLot,
        hand_backs: HandBacks,
        answers: AnswerBuilder,
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._submitter, self._settings, self._outcomes = submitter, settings, outcomes
        self._seals = seals  # seals the results of sensitive jobs
        self._sessions, self._parking_lot, self._hand_backs, self._answers = sessions, parking_lot, hand_backs, answers
        self.durable_steps = DurableSteps(env, store, sessions)
        self._asked: set[UUID] = set()  # sessions with requests that must be delivered at once
        self._batcher: Batcher[IncomingExchange, Reply] = Batcher(self._commit, most=64, in_flight=2, key=_session_of)
        self._reads: Batcher[IncomingExchange, Reply] = Batcher(fail_together(store.look), most=MOST_READ)
        self._requests: Lookup[UUID, list[StopRequest]] = Lookup(store.requests_of, most=MOST_READ)
        self._most_log = settings.log_limit * LIMIT_FACTOR
        hints.listen(self._on_hint)

    async def register(
        self, namespace: int, presence: Register, namespace_name: str = "default", key: str = ""
    ) -> Registered:
        """Register a worker's session. Raises OverQuota if its key has too many sessions."""
        check_presence(presence)
        await self._refuse_too_many(key)
        session = await self._store.register(namespace, presence, key)
        for silent in self._sessions.add(session):
            self._forget(silent)
        return Registered(
            session_id=session.id, namespace=namespace_name, session_timeout=self._settings.session_timeout,
            heartbeat=self._settings.heartbeat, servers=self._answers.servers, now=self._env.now(), epoch=session.epoch,
            log_limit=self._settings.log_limit,
        )  # fmt: skip

    async def _refuse_too_many(self, key: str) -> None:
        """Refuse sessions beyond the limit of a key. Concurrent registrations may exceed it by a few."""
        most = self._settings.sessions_per_key
        if key and await self._store.read(lambda: sessions.count_of_key(key, most)) >= most:
            raise OverQuota(
                f"This key has {most} live sessions of workers.",
                "Stop some workers, give others a key of their own, or raise `sessions_per_key`.",
                retryAfter=self._settings.session_timeout // SECOND,
            )

    async def reattach(self, namespace: int, session: UUID, body: Reattach) -> Reattached:
        """Let a session continue after a failover of the store, with what its worker holds."""
        await self._sessions.get(namespace, session)
        self._forget(session)
        policies, now, env = self._directory.definitions.policies, self._env.now(), self._env
        done = await self._store.write(lambda: reattach(session, body, policies, now, env.rng, env.new_id))
        if done is None:
            raise _ended()
        self._outcomes.publish_settled(done.effects)
        return Reattached(epoch=done.epoch, stop=done.stop, now=env.now())

    async def exchange(self, namespace: int, session: UUID, up: Exchange) -> bytes:
        """Settle outcomes, claim or wait for work, and return the encoded answer."""
        check_exchange(up)
        if up.outcomes:
            self._parking_lot.counters.reported.add(sum(outcome.hi - outcome.lo for outcome in up.outcomes))
        up = self._seals.seal_results(await self._marked(up))
        try:
            known = await self._sessions.get(namespace, session)
        except NotFound:
            self._parking_lot.counters.refused(up.outcomes)
            raise
        patient = up.wait > 0 and not self._parking_lot.closed and session not in self._asked
        lanes = self._sessions.lanes(known)
        incoming = IncomingExchange(
            session=session, exchange=up, lanes=lanes, preferences=known.preferences, patient=patient,
            packed_logs=pack_all(up.logs) if up.logs else (), log_limit=self._most_log,
        )  # fmt: skip
        reply = await self._decide(incoming)
        if reply.ignored and not reply.known:  # a repetition repeats outcomes that are already settled
            self._parking_lot.counters.refused(reply.ignored)
        match reply.decision:
            case "ended":
                self._parking_lot.counters.refused(up.outcomes)
                self._forget(session)
                raise _ended()
            case "detached":
                self._forget(session)
                raise _detached()
            case "gap":
                raise ExchangeNumber(
                    f"Exchange {up.n} on channel {up.channel} is out of order: the next number is {reply.seen + 1}.",
                    "Number exchanges 1, 2, 3, ... on each channel, and repeat an unanswered one with its number.",
                    field="n",
                    expected=reply.seen + 1,
                )
            case "park":
                return await self._park(known, incoming, reply)
        granted = await self._store.stamped_slices(session, up.channel, up.n) if reply.known else reply.granted
        if up.free:
            self._parking_lot.make_room(session)
        self._hand_backs.note(session, up, granted)
        # Another waiting exchange of the session gets the requests when its wait ends.
        with_requests = not granted and not self._parking_lot.has_waiting(session)
        return await self._encode(known, granted, reply.ignored, reply.draining, with_requests=with_requests)

    async def _marked(self, up: Exchange) -> Exchange:
        """Mark outcomes of sensitive jobs, because not every worker does so."""
        plain = {outcome.parcel for outcome in up.outcomes if outcome.results and not outcome.sensitive}
        if (
            not plain
            or not self._directory.has_sealed_jobs
            or not (found := await self._answers.sensitive_parcels(plain))
        ):
            return up
        marked = [
            structs.replace(outcome, sensitive=True) if outcome.parcel in found else outcome for outcome in up.outcomes
        ]
        return structs.replace(up, outcomes=marked)

    async def _decide(self, incoming: IncomingExchange) -> Reply:
        """Commit an exchange.

        If it reports nothing and there is no work, only read from the store, so that no lock and no write precede its
        wait.
        """
        finds_nothing = not self._parking_lot.has_work(want_of(incoming, 1), incoming.lanes)
        return await (self._reads if finds_nothing and is_quiet(incoming) else self._batcher).do(incoming)

    def _forget(self, session: UUID) -> None:
        self._sessions.forget(session)
        self._hand_backs.forget(session)
        self._asked.discard(session)

    async def _commit(self, incoming: Sequence[IncomingExchange]) -> Sequence[Reply]:
        """Commit concurrent exchanges in one transaction."""
        marks = self._directory.marks()
        parked = self._parking_lot.waiting_of({each.session for each in incoming})
        room = sum(room_of(each.exchange) for each in incoming) + capacity([waiting.want for waiting in parked])
        views = self._directory.lane_states(room)
        done = await self._store.exchange(
            incoming, views, self._directory.paused, self._directory.definitions.policies,
            arising=self._directory.states_of_new, parked=parked,
        )  # fmt: skip
        self._answers.parcels.add(done.effects.created)  # following steps are most likely granted at once
        self._parking_lot.serve(done.claimed.running, {waiting.place for waiting in parked})
        self._parking_lot.note_commit()
        left = self._parking_lot.learn_from_claim(done.claimed, marks)
        self._directory.learn_from_ends(done.effects)
        self._outcomes.publish_settled(done.effects, left | done.effects.requeued)
        return done.replies

    async def _park(self, known: CachedSession, incoming: IncomingExchange, reply: Reply) -> bytes:
        """Wait for work, and return the answer: claimed slices, requests to the worker, or nothing."""
        up, session = incoming.exchange, incoming.session
        wait = min(up.wait, self._settings.heartbeat) * self._share_of_wait(known)
        if session in self._asked:  # a request was made while the exchange was committed
            wait = 0
        want = want_of(incoming, known.session.concurrency)
        until = self._env.clock.monotonic() + wait / 1_000_000
        if len(self._parking_lot) >= CROWD:
            until -= until % TOGETHER
        parked = ParkedExchange(want=want, until=until)
        served = await self._parking_lot.park(parked)
        if served.decision == "ended":
            self._forget(session)
            raise _ended()
        if served.decision == "detached":
            self._forget(session)
            raise _detached()
        if served.decision == "superseded":
            raise Busy("The worker has repeated this exchange; only the repetition gets an answer.")
        granted = served.granted
        if served.decision == "taken":
            granted = await self._store.stamped_slices(session, up.channel, up.n)
        self._hand_backs.note(session, up, granted)
        draining = reply.draining or served.draining
        return await self._encode(known, granted, reply.ignored, draining, with_requests=not granted)

    def _share_of_wait(self, known: CachedSession) -> float:
        """Return the part of its wait that a session waits.

        It is small and random for the first wait of a session from another server, so that the heartbeats of many
        sessions that move here together come early and spread out.
        """
        if not known.is_new:
            return 1.0
        known.is_new = False
        return self._env.rng.uniform(*FIRST_WAIT)

    async def _encode(
        self,
        known: CachedSession,
        granted: Sequence[RunningSlice],
        ignored: Sequence[Range],
        draining: bool,
        *,
        with_requests: bool,
    ) -> bytes:
        """Encode an answer. It contains the requests to the worker if it brings no work or a request was just made."""
        session = known.session.id
        requests: list[Request] = []
        hand_back: list[Range] = []
        if with_requests or session in self._asked:
            self._asked.discard(session)
            try:
                stops = await self._requests.get(session) or ()
                hand_back = await self._hand_backs.take(session)
            except BaseException:
                self._asked.add(session)
                raise
            requests = [
                Request(parcel=parcel, item=item, attempt=attempt, kind=kind)  # type: ignore[arg-type]
                for parcel, item, attempt, kind in stops
            ]
        answer = await self._answers.encode(
            granted,
            known.session,
            requests=requests,
            hand_back=hand_back,
            ignored=ignored,
            drain=draining,
        )
        self._parking_lot.counters.answered(granted, len(answer))
        return answer

    def _on_hint(self, hint: Hint) -> None:
        """Answer the parked exchanges of sessions with a new request, such as a cancellation."""
        for session in hint.sessions:
            if session in self._sessions:
                self._asked.add(session)
                self._parking_lot.release(session)

    async def submit_children(self, namespace: int, session: UUID, body: ChildSubmit) -> list[Receipt]:
        """Submit executions on behalf of a running item. A repeated call is answered with the same executions."""
        await self._sessions.get(namespace, session)
        await self._held(session, body.parcel, body.item, body.attempt)
        parent = execution_id(body.parcel, body.item)
        for request in body.submissions:
            check_key(request)
        requests = [_keyed(request, parent, body.call, i) for i, request in enumerate(body.submissions)]
        call = _call_of(namespace, parent, body, self._env.now() + CALL_KNOWN_FOR)
        submit = self._submitter.submit
        try:
            receipts = await submit(namespace, requests, origin="child", parent=parent, idempotency=call)
        except KeyReused:
            detail = f'Call "{body.call[:60]}" of this execution submitted other jobs before.'
            raise KeyReused(
                detail, "Give each call a name of its own, for example with a number.", field="call"
            ) from None
        return [receipt for receipt in receipts if not isinstance(receipt, HoraeError)]

    async def _held(self, session: UUID, parcel: UUID, item: int, attempt: int) -> None:
        if not await self._store.read(lambda: steps.is_held(session, parcel, item, attempt)):
            raise not_held()

    async def close(self, namespace: int, session: UUID) -> None:
        """Close the session of a worker that leaves."""
        await self._sessions.get(namespace, session)
        self._forget(session)
        if await self._store.close_session(session):
            self._hints.send(Hint(sessions=[session]))

    @property
    def batches(self) -> dict[str, Buckets]:
        """The numbers of calls that shared a transaction, by kind."""
        return {"exchange": self._batcher.sizes, "read": self._reads.sizes, "step": self.durable_steps.batches}

    async def stop(self) -> None:
        """Answer parked exchanges and finish pending calls."""
        await self._parking_lot.close()
        for batcher in (self._batcher, self._reads):
            await batcher.close()
        await self.durable_steps.stop()


def _session_of(incoming: IncomingExchange) -> UUID:
    return incoming.session


def room_of(up: Exchange) -> int:
    """Return the largest number of executions that an exchange can take."""
    return up.free + sum(up.prefetch.values())


def _keyed(request: Submit, parent: UUID, call: str, index: int) -> Submit:
    """Give a child without its own key a key made of its parent and call. It is known for KNOWN_FOR, whatever the job's
    `keyFor` is.
    """
    if request.key:
        return request
    return structs.replace(request, key=f"{parent}:{call}:{index}", key_for=KNOWN_FOR)


def _call_of(namespace: int, parent: UUID, body: ChildSubmit, until: Instant) -> Idempotency:
    """Return the idempotency key of a call. A repeated call must name the same jobs; its params may differ."""
    jobs = hashlib.sha256(msgspec.json.encode([request.job for request in body.submissions]))
    return Idempotency(namespace, "sessions.submit", f"{parent}:{body.call}", jobs.digest(), until)
