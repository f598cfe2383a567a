"""The scenes: pairs of operations that may meet on the same rows, and the invariants for every order."""

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from msgspec import structs

from horae.engine.definitions import job_changes
from horae.errors import BadInput, Conflict
from horae.features.backfills.model.values import Backfill
from horae.features.backfills.store import backfills
from horae.features.backfills.store import work as backfill_work
from horae.model.admission.claim_plan import LaneState
from horae.model.base.ids import parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions import submission
from horae.model.fleet.protocol import Exchange, Outcome, Register
from horae.model.fleet.protocol import Step as StepBody
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from horae.store import epochs
from horae.store.admission import lanes
from horae.store.definitions import jobs
from horae.store.driver import alone
from horae.store.executions import promote
from horae.store.executions.durable import steps
from horae.store.executions.entering import submit
from horae.store.executions.leaving import cancel, cancel_job
from horae.store.executions.reads import audit, housekeeping
from horae.store.fleet import exchange, hand_over, rescue, sessions
from horae.store.script import Fetch, Script
from horae.store.triggers import fire, triggers
from tests.races.duel import COMMIT, LEFT, RIGHT
from tests.races.stage import Move, Scene, SetScene, Told
from tests.store_contract.auditing import audit_executions
from tests.store_contract.world import (
    NAMESPACE,
    TestJob,
    Worker,
    World,
    add_trigger,
    began,
    failed,
    lead,
    rank,
    released,
    success,
)

MINUTE = 60_000_000
SCENES: dict[str, SetScene] = {}


def scene(name: str) -> Callable[[SetScene], SetScene]:
    def keep(set_scene: SetScene) -> SetScene:
        SCENES[name] = set_scene
        return set_scene

    return keep


# Moves


class Cast:
    """The usual parts of a scene: a job, its lane, and moves at one instant."""

    def __init__(self, world: World, job: TestJob) -> None:
        self.world, self.job = world, job
        self.lanes = frozenset({job.lane})
        self.views = [LaneState(lane=job.lane)]
        self.seen = world.now()  # the last heartbeat of every worker when the scene begins
        self.now = world.now() + 5
        self.new_id = world.env.new_id

    def exchange(
        self, w: Worker, *, n: int | None = None, channel: int = 0, patient: bool = False,
        paused: frozenset[UUID] = frozenset(), **up: Any,
    ) -> Move:  # fmt: skip
        number = w.numbers[channel] + 1 if n is None else n
        head = w.head(Exchange(channel=channel, n=number, **up), self.lanes, patient=patient)

        def told(done: exchange.ExchangeResult) -> Told:
            (reply,) = done.replies
            if reply.decision != "answer":
                return []
            return [((w.session, channel, number), None if reply.known else reply.granted)]

        policies = {(self.job.id, 1): self.job.spec.retry}
        return Move(
            "exchange",
            lambda: exchange.exchange([head], self.views, paused, policies, self.now, Random(7), self.new_id),
            told,
        )

    def claim(self, w: Worker, k: int = 1, **more: Any) -> Move:
        return self.exchange(w, free=k, **more)

    def report(self, w: Worker, *outcomes: Outcome, **more: Any) -> Move:
        return self.exchange(w, outcomes=list(outcomes), **more)

    def serve(self, *waiting: tuple[Worker, int], channel: int = 0, n: int | None = None) -> Move:
        """Return a server's claim for its parked exchanges."""
        parked = [w.parked(k, self.lanes, channel=channel, n=n) for w, k in waiting]

        def told(done: Any) -> Told:
            stamps = sorted({(s.session, s.channel, s.n) for s in done.running})
            return [(t, [s for s in done.running if (s.session, s.channel, s.n) == t]) for t in stamps]

        return Move(
            "claim_for_parked", lambda: exchange.claim_for_parked(parked, self.views, frozenset(), self.now), told
        )

    def empty(self, w: Worker, *, channel: int = 0, n: int | None = None) -> Move:
        number = w.numbers[channel] + 1 if n is None else n

        def told(emptied: Any) -> Told:
            verdict = emptied[w.session, channel][0]
            answers = {"empty": [], "taken": None}
            return [((w.session, channel, number), answers[verdict])] if verdict in answers else []

        return Move("answer_empty", lambda: exchange.answer_empty([(w.session, channel, number)], self.now), told)

    def lose(self, w: Worker, seen: int | None = None) -> list[Move]:
        """Return the rescuer's two transactions, for a session last seen with this heartbeat."""
        return [self.mark_lost(w, seen), self.rescue(w)]

    def mark_lost(self, w: Worker, seen: int | None = None) -> Move:
        last = self.seen if seen is None else seen
        return Move("mark_lost", lambda: rescue.mark_lost(w.session, last, self.now))

    def rescue(self, w: Worker, **more: Any) -> Move:
        return Move("rescue", lambda: rescue.rescue(w.session, 100, self.now, Random(7), self.new_id, **more))

    def cancel(self, parcel: UUID, item: int) -> Move:
        """Return one try; the store retries while the item is moving."""
        return Move("cancel", lambda: cancel.cancel(parcel, item, "", self.now, self.new_id))

    def promote(self) -> Move:
        return Move("promote", lambda: promote.promote_due(promote.LONG_AGO, self.now, 100, rank))

    def open_gate(self) -> Move:
        return Move("open_gate", lambda: promote.open_gate(self.job.id, 100, rank, self.now))

    def submit(self, *executions: Any, key: str | None = None, body: bytes = b"1", later: int = 0) -> Move:
        now = self.now + later
        own = None if key is None else submission.Idempotency(NAMESPACE, "POST", key, body, now + MINUTE)
        asked = [submission.Submission(executions=list(executions), idempotency=own)]
        return Move("submit", lambda: submit.submit(asked, self.world.env.new_id, now))

    def hand_over(self, w: Worker, k: int = 1, *, channel: int = 0) -> Move:
        """Return one try to accept executions directly into a waiting exchange; otherwise the store queues them."""
        asked = [submission.Submission(executions=self.world.wanted(self.job, k))]
        taker = w.parked(k, self.lanes, channel=channel)
        draft = hand_over.draft(asked, [taker], frozenset(), self.world.env.new_id, self.now)
        assert draft is not None
        granted, stamp = draft.submitted.running, (w.session, channel, taker.want.n)

        def told(made: bool) -> Told:
            return [(stamp, granted)] if made else []

        return Move("hand_over", alone(draft.change), told)

    def fire(self) -> Move:
        return Move("fire", lambda: fire.fire(100, lead, self.world.env.new_id, self.now))

    def triggers(self, name: str, change: Callable[[triggers.Timer], Script[None]], state: str) -> Move:
        """Return a change of the job and of all its triggers."""

        def script() -> Script[None]:
            yield from jobs.lock(self.job.id, NAMESPACE)
            if state == "deleted":
                yield from jobs.delete(self.job.id, None, self.now)
            else:
                yield from jobs.set_state(self.job.id, state, self.now)
            for timer in (yield from triggers.of_job(self.job.id, lock=True)):
                yield from change(timer)

        return Move(name, script)

    def pause(self) -> Move:
        return self.triggers("pause", triggers.pause, "paused")

    def resume(self) -> Move:
        return self.triggers("resume", lambda timer: triggers.resume(timer, self.now), "active")

    def delete(self) -> Move:
        return self.triggers("delete", lambda timer: triggers.end(timer, self.now), "deleted")


async def cast(world: World, **spec: Any) -> Cast:
    return Cast(world, await world.job(**spec))


async def holding(c: Cast, n: int = 3, name: str = "holder", **more: Any) -> tuple[UUID, Worker, Any]:
    """Create a worker that holds one slice of n items."""
    parcel = await c.world.parcel(c.job, n)
    w = await c.world.worker(name)
    (slice,) = await w.claim(n, **more)
    return parcel, w, slice


def replies(results: list[Any]) -> list[Any]:
    return [reply for result in results for reply in result.replies]


# Claims


@scene("claim / claim, two sessions")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 3)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 2)], right=[c.claim(b, 2)], patient="")


@scene("claim / claim, two sessions and many slices")
async def _(world: World) -> Scene:
    c = await cast(world)
    for n in (1, 2):
        await world.parcel(c.job, n)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 1)], right=[c.claim(b, 2)], patient="")


@scene("claim / claim, two sessions and pieces of one parcel")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 5)
    await world.store.cancel(parcel, 2, "")
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 2)], right=[c.claim(b, 1)], patient="")


@scene("claim / claim, one session, two channels and suspects")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 3)
    await world.do("UPDATE queued SET losses = 2")
    w = await world.worker(concurrency=2)
    return Scene(left=[c.claim(w, 2)], right=[c.claim(w, 2, channel=1)])


@scene("claim / claim, one session and two channels")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 3)
    w = await world.worker()
    return Scene(left=[c.claim(w, 2)], right=[c.claim(w, 2, channel=1)])


@scene("claim / claim, one exchange at two servers")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 4)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        both = replies(left + right)
        assert sum(reply.known for reply in both) == 1, "one exchange claimed twice"
        assert sum(s.hi - s.lo for s in await w.holds()) == 2

    return Scene(left=[c.claim(w, 2)], right=[c.claim(w, 2)], check=check)


@scene("claim / claim_for_parked, two sessions")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 3)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.claim(a, 2)], right=[c.serve((b, 2))], patient="")


@scene("claim / claim_for_parked, one exchange")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 4)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(s.hi - s.lo for s in await w.holds()) == 2, "one exchange was granted twice"

    return Scene(left=[c.claim(w, 2, patient=True)], right=[c.serve((w, 2))], check=check, patient=LEFT)


@scene("claim_for_parked / claim_for_parked, one exchange parked at two servers")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 4)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(s.hi - s.lo for s in await w.holds()) == 2, "one exchange was granted twice or not at all"

    return Scene(left=[c.serve((w, 2))], right=[c.serve((w, 2))], check=check, patient="")


@scene("claim_for_parked / claim_for_parked, the same sessions in two orders")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    a, b = await world.worker("a"), await world.worker("b")
    return Scene(left=[c.serve((a, 1), (b, 1))], right=[c.serve((b, 1), (a, 1))], patient="")


@scene("exchange / exchange, the same two sessions in one batch each")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 4)
    a, b = await world.worker("a"), await world.worker("b")

    def batch(channel: int, *workers: Worker) -> Move:
        heads = [w.head(Exchange(channel=channel, n=1, free=1), c.lanes) for w in workers]

        def told(done: exchange.ExchangeResult) -> Told:
            return [
                ((head.session, channel, 1), None if reply.known else reply.granted)
                for head, reply in zip(heads, done.replies, strict=True)
            ]

        return Move(
            "exchange", lambda: exchange.exchange(heads, c.views, frozenset(), {}, c.now, Random(7), c.new_id), told
        )

    return Scene(left=[batch(0, a, b)], right=[batch(1, b, a)])


@scene("claim, with one parked beside it / claim_for_parked")
async def _(world: World) -> Scene:
    """A server claims for its parked exchanges: with an exchange of the same session, and by itself."""
    c = await cast(world)
    await world.parcel(c.job, 4)
    w = await world.worker()
    head, parked = w.head(Exchange(channel=0, n=1, free=1), c.lanes), w.parked(1, c.lanes, channel=1)

    def told(done: exchange.ExchangeResult) -> Told:
        beside = [s for s in done.claimed.running if s.channel == 1]
        return [((w.session, 0, 1), done.replies[0].granted), *([((w.session, 1, 1), beside)] if beside else [])]

    def script() -> Any:
        return exchange.exchange([head], c.views, frozenset(), {}, c.now, Random(7), c.new_id, parked=[parked])

    return Scene(left=[Move("exchange", script, told)], right=[c.serve((w, 1), channel=1)])


# Empty answers


@scene("claim / answer_empty, one exchange")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()
    return Scene(left=[c.claim(w, 1, patient=True)], right=[c.empty(w)])


@scene("claim_for_parked / answer_empty, one exchange")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert (right[0][w.session, 0][0] == "taken") == bool(left[0].running)

    return Scene(left=[c.serve((w, 1))], right=[c.empty(w)], check=check, patient=RIGHT)


@scene("claim, delayed / answer_empty, then the next claim")
async def _(world: World) -> Scene:
    """A copy of exchange 1 is delayed while its other copy gets an empty answer and the worker goes on."""
    c = await cast(world)
    await world.parcel(c.job, 3)
    w = await world.worker()
    return Scene(left=[c.claim(w, 1, n=1)], right=[c.empty(w, n=1), c.claim(w, 1, n=2)])


@scene("answer_empty / answer_empty, two channels")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left[0][w.session, 0][0] == right[0][w.session, 1][0] == "empty"
        for channel in (0, 1):
            emptied = await world.store.answer_empty([(w.session, channel, 1)])
            assert emptied[w.session, channel][0] == "taken", "a number was taken and forgotten"

    return Scene(left=[c.empty(w)], right=[c.empty(w, channel=1)], check=check)


# Reports


@scene("report / report, overlapping parts of one slice")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 4)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["success"] * 4, "a report was not accepted"
        assert sum(r.hi - r.lo for reply in replies(left + right) for r in reply.ignored) == 1

    return Scene(
        left=[c.report(w, success(slice, 0, 3))], right=[c.report(w, success(slice, 2, 4), channel=1)], check=check
    )


@scene("report / report, one exchange at two servers")
async def _(world: World) -> Scene:
    c = await cast(world, retry=RetryPolicy(retries=3))
    parcel, w, slice = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (waits,) = await world.on("waiting", parcel)
        assert waits.failures == 1, "a failure was counted twice"

    return Scene(left=[c.report(w, failed(slice))], right=[c.report(w, failed(slice))], check=check)


@scene("report / claim, one session")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 2)
    await world.parcel(c.job, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["success", "running"]

    return Scene(left=[c.report(w, success(slice, 0, 1))], right=[c.claim(w, 1, channel=1)], check=check)


@scene("report that hands back / claim, two sessions")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, slice = await holding(c, 2)
    other = await world.worker("other")
    return Scene(left=[c.report(w, released(slice, 1, 2))], right=[c.claim(other, 1)], patient="")


@scene("report, started / report, one session")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 3)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["running", "success", "success"]

    return Scene(
        left=[c.exchange(w, started=[began(slice, c.now, 0, 2)])],
        right=[c.report(w, success(slice, 1, 3), channel=1)],
        check=check,
    )


@scene("report / answer_empty, one session")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["success"] * 2
        for channel, n in ((0, 2), (1, 1)):
            emptied = await world.store.answer_empty([(w.session, channel, n)])
            assert emptied[w.session, channel][0] == "taken", "a number was taken and forgotten"

    return Scene(left=[c.report(w, success(slice))], right=[c.empty(w, channel=1)], check=check)


@scene("report / claim_for_parked, one session")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 2)
    await world.parcel(c.job, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["success", "running"]

    return Scene(
        left=[c.report(w, success(slice, 0, 1))], right=[c.serve((w, 1), channel=1)], check=check, patient=LEFT
    )


@scene("report of a failure / promote")
async def _(world: World) -> Scene:
    c = await cast(world, retry=RetryPolicy(retries=3, delay=0))
    parcel, w, slice = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        assert states == (["queued"] if right[0].rows else ["waiting"]) * 2

    return Scene(left=[c.report(w, failed(slice))], right=[c.promote()], check=check, patient="")


# Lost sessions


@scene("claim / mark_lost, rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 1)
    await world.parcel(c.job, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await w.holds() == [] or not right[0], "a lost session got work after it was rescued"
        assert (left[0].replies[0].decision == "ended") == right[0], "a report of a lost session was accepted"

    return Scene(left=[c.claim(w, 1)], right=c.lose(w), check=check)


@scene("claim / mark_lost, rescue, with the claim as the last heartbeat")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 1)
    await world.parcel(c.job, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await w.holds() == [] or not right[0], "a lost session kept its grant"

    return Scene(left=[c.claim(w, 1)], right=c.lose(w, c.now), check=check)


@scene("claim_for_parked / mark_lost, rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 1)
    await world.parcel(c.job, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await w.holds() == [] or not right[0], "a lost session got work after it was rescued"

    return Scene(left=[c.serve((w, 1))], right=c.lose(w), check=check, patient=RIGHT)


@scene("report / mark_lost, rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 3)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        reported = left[0].replies[0].decision == "answer"
        states = await world.states(parcel)
        assert states[0] == ("success" if reported else "queued"), "a report was accepted and lost, or refused and kept"
        (seen,) = await world.rows("SELECT state FROM sessions WHERE id = $1", w.session)
        assert seen[0] == ("live" if states[1] == "running" else "lost")

    return Scene(left=[c.report(w, success(slice, 0, 1))], right=c.lose(w), check=check)


@scene("report / rescue, a session already lost")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 2)
    await w.lose()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left[0].replies[0].decision == "ended"
        assert await world.states(parcel) == ["queued"] * 2

    return Scene(left=[c.report(w, success(slice))], right=[c.rescue(w)], check=check)


@scene("answer_empty / mark_lost")
async def _(world: World) -> Scene:
    """The heartbeat arrives just in time."""
    c = await cast(world)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        beat = left[0][w.session, 0][0] == "empty"
        assert beat != right[0], "a session was lost although its heartbeat was accepted"

    return Scene(left=[c.empty(w)], right=[c.mark_lost(w)], check=check)


@scene("mark_lost / mark_lost")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(left + right) == [False, True], "a session was lost twice"

    return Scene(left=[c.mark_lost(w)], right=[c.mark_lost(w)], check=check)


@scene("mark_lost / close")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(left + right) == [False, True], "a session ended twice"
        (row,) = await world.rows("SELECT state FROM sessions WHERE id = $1", w.session)
        assert row[0] == ("lost" if left[0] else "closed")

    return Scene(left=[c.mark_lost(w)], right=[Move("close", lambda: rescue.close(w.session, c.now))], check=check)


@scene("rescue / rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 2)
    other = await world.parcel(c.job, 1)
    await w.claim(1)
    await w.lose()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(len(effects.moved) for effects in left + right) == 2, "a slice was taken back twice"
        assert {s.losses for s in await world.on("queued")} == {1}
        assert await world.states(parcel) + await world.states(other) == ["queued"] * 3

    return Scene(left=[c.rescue(w)], right=[c.rescue(w)], check=check)


@scene("rescue / claim, a rescued slice is claimed")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 2)
    await w.lose()
    other = await world.worker("other")
    return Scene(left=[c.rescue(w)], right=[c.claim(other, 2)], patient="")


@scene("close, rescue / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 1)
    await world.parcel(c.job, 1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await w.holds() == [], "a closed session got work after it was rescued"

    close = Move("close", lambda: rescue.close(w.session, c.now))
    return Scene(left=[close, c.rescue(w, charge=False)], right=[c.claim(w, 1)], check=check)


@scene("end_old_epochs, rescue / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, _ = await holding(c, 1)
    await world.parcel(c.job, 1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await w.holds() == [], "a session of an old epoch got work after it was rescued"

    ends = Move("end_old_epochs", lambda: sessions.end_old_epochs(2, c.now))
    return Scene(left=[ends, c.rescue(w, charge=False)], right=[c.claim(w, 1)], check=check)


@scene("register / a new epoch")
async def _(world: World) -> Scene:
    id, presence, now = world.env.new_id(), Register(protocol=1, worker="w"), world.now()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        ((state, epoch),) = await world.rows("SELECT state, epoch FROM sessions WHERE id = $1", id)
        ended = epoch < right[0]
        assert state == ("closed" if ended else "live"), "a session of an old epoch lives on in the new one"

    register = Move("register", lambda: sessions.register(id, NAMESPACE, presence, now))
    return Scene(left=[register], right=[Move("grow", lambda: epochs.begin_epoch(now))], check=check)


@scene("ask_drain / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left == [True]
        (row,) = await world.rows("SELECT state FROM sessions WHERE id = $1", w.session)
        assert row[0] == "draining", "a drain request was overwritten"

    return Scene(left=[Move("ask_drain", lambda: sessions.ask_drain(w.session))], right=[c.claim(w, 1)], check=check)


@scene("store a step / mark_lost, rescue, a new attempt")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 1)
    other = await world.worker("other")
    body = StepBody(parcel=parcel, item=0, attempt=slice.attempt, name="paid")
    known = Move("steps", lambda: steps.known_steps(parcel, 0, NAMESPACE))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        kept = bool(await world.rows("SELECT name FROM steps"))
        assert kept == (not left[0][0].refused)
        new_attempt = bool(right[2].replies[0].granted)
        assert not (new_attempt and kept and not right[3].steps), "a step was stored after the rescue of its attempt"

    remember = Move("remember", lambda: steps.remember([(w.session, body)], c.now))
    return Scene(left=[remember], right=[*c.lose(w), c.claim(other, 1), known], check=check)


@scene("repair / rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 2)
    await w.lose()

    def repair() -> Script[Any]:
        report = yield from audit_executions(c.now + 1, 0)
        return (yield from audit.repair(report.findings, c.now, Random(7), c.new_id))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (back,) = await world.on("queued", parcel)
        assert back.losses == 1

    return Scene(left=[Move("repair", repair)], right=[c.rescue(w)], check=check)


@scene("repair / repair, items on no shelf")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 3)
    lost = audit.Finding(kind="missing", shelf="parcels", parcel=parcel, lo=0, hi=2, detail="")
    await world.do("UPDATE queued SET lo = 2")
    mend = Move("repair", lambda: audit.repair([lost], c.now, Random(7), c.new_id))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(done.requeued for done in left + right) == [0, 2]

    return Scene(left=[mend], right=[mend], check=check)


# Cancel


def verdict(results: list[Any]) -> str:
    """Return the result of a cancellation."""
    return str(results[0][0])


@scene("cancel / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 3)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        state = (await world.states(parcel))[1]
        asked = bool((await world.store.requests_of([w.session]))[w.session])
        expected = {"cancelled": ("cancelled", False), "asked": ("running", True), "moving": ("running", False)}
        assert (state, asked) == expected[verdict(left)], f"it was {verdict(left)}, and is {state}"

    return Scene(left=[c.cancel(parcel, 1)], right=[c.claim(w, 2)], check=check, patient=LEFT)


@scene("cancel / report of a failure with retries")
async def _(world: World) -> Scene:
    c = await cast(world, retry=RetryPolicy(retries=3))
    parcel, w, slice = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        state = (await world.states(parcel))[0]
        expected = {"cancelled": "cancelled", "asked": "cancelled", "moving": "waiting"}
        assert state == expected[verdict(left)], f"it was {verdict(left)}, and is {state}"

    return Scene(left=[c.cancel(parcel, 0)], right=[c.report(w, failed(slice))], check=check)


@scene("cancel / report of a success")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, slice = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.states(parcel) == ["success"] * 2
        assert verdict(left) in ("asked", "final", "moving")

    return Scene(left=[c.cancel(parcel, 0)], right=[c.report(w, success(slice))], check=check)


@scene("cancel / mark_lost, rescue")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        state = (await world.states(parcel))[0]
        expected = {"cancelled": "cancelled", "asked": "cancelled", "moving": "queued"}
        assert state == expected[verdict(left)], f"it was {verdict(left)}, and is {state}"

    return Scene(left=[c.cancel(parcel, 0)], right=c.lose(w), check=check)


@scene("cancel / promote")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 3, due_at=c.now + 1)
    c.now += 1

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        assert (verdict(left) == "cancelled") == (states[1] == "cancelled")
        assert verdict(left) in ("cancelled", "moving")

    return Scene(left=[c.cancel(parcel, 1)], right=[c.promote()], check=check, patient="")


@scene("cancel / cancel, neighbours")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 3)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        for item, results in ((0, left), (1, right)):
            assert (states[item] == "cancelled") == (verdict(results) == "cancelled")

    return Scene(left=[c.cancel(parcel, 0)], right=[c.cancel(parcel, 1)], check=check, patient="")


@scene("cancel / cancel, one running item")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 2)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert verdict(left) == verdict(right) == "asked"
        assert len((await world.store.requests_of([w.session]))[w.session]) == 1

    return Scene(left=[c.cancel(parcel, 0)], right=[c.cancel(parcel, 0)], check=check)


@scene("cancel / claim_for_parked")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 2)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        state = (await world.states(parcel))[0]
        assert (state == "cancelled") == (verdict(left) == "cancelled")

    return Scene(left=[c.cancel(parcel, 0)], right=[c.serve((w, 1))], check=check, patient=LEFT)


@scene("cancel, running / answer_empty")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel, w, _ = await holding(c, 1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert verdict(left) == "asked"
        assert right[0][w.session, 0][0] == "empty"

    return Scene(left=[c.cancel(parcel, 0)], right=[c.empty(w)], check=check)


@scene("cancel a job's pending / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 3)
    w = await world.worker()
    all_pending = Move(
        "cancel_pending",
        lambda: cancel_job.cancel_pending("queued", c.job.id, c.new_id, cancel_job.START, 100, "", c.now),
    )
    del parcel
    return Scene(left=[all_pending], right=[c.claim(w, 2)], patient="")


@scene("continued deletion / restore, submit")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2)
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    await world.store.write(lambda: jobs.delete(c.job.id, "pending", c.now))
    more = Move(
        "cancel_more",
        lambda: cancel_job.cancel_more("queued", c.job.id, c.new_id, cancel_job.START, 100, "", c.now),
    )
    draft = job_changes.JobDraft(spec=before.job.spec)
    restore = Move("restore", lambda: job_changes.restore(before, [], draft, world.env.new_id, c.now))
    fresh = c.submit(*world.wanted(c.job))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (receipt,) = receipts(right[1:])
        kept = [s.parcel for s in await world.on("queued")]
        assert parcel_of(receipt.execution_id) in kept, "an execution of a restored job was cancelled"

    return Scene(left=[more], right=[restore, fresh], check=check)


@scene("submit / delete")
async def _(world: World) -> Scene:
    c = await cast(world)
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    delete = Move("delete", lambda: job_changes.delete(before, c.new_id, c.now, "pending"))
    late = Move("submit", c.submit(*world.wanted(c.job)).make, refusals=(submit.JobMoved,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.on("queued") == [], "an execution of a deleted job is queued"
        assert await world.store.read(cancel_job.unfinished) == []

    return Scene(left=[late], right=[delete], check=check)


@scene("hand over / delete")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    delete = Move("delete", lambda: job_changes.delete(before, c.new_id, c.now, "pending"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        running = bool(await world.on("running"))
        assert running == left[0], "an execution of a deleted job was begun, or an accepted one is gone"

    return Scene(left=[c.hand_over(w)], right=[delete], check=check)


@scene("hand over / lost session")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.on("running") == [] or not right[0], "a lost session has a grant for ever"

    return Scene(left=[c.hand_over(w)], right=c.lose(w), check=check)


@scene("hand over / empty answer")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()
    return Scene(left=[c.hand_over(w)], right=[c.empty(w)])


@scene("hand over / claim for the same exchange")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 1)
    w = await world.worker()
    return Scene(left=[c.hand_over(w)], right=[c.serve((w, 1))])


@scene("hand over / exchange on another channel")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 1)
    w = await world.worker()
    return Scene(left=[c.hand_over(w, channel=1)], right=[c.claim(w, 1)])


@scene("delete / claim of a part")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 3)
    w = await world.worker()
    before = await world.store.job(c.job.id, NAMESPACE)
    assert before is not None
    delete = Move("delete", lambda: job_changes.delete(before, c.new_id, c.now, "pending"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        noted = await world.store.read(cancel_job.unfinished)
        assert bool(await world.on("queued")) <= bool(noted), "an execution that a claim left queued is never cancelled"

    return Scene(left=[delete], right=[c.claim(w, 1)], check=check)


@scene("ask a job's sessions / report")
async def _(world: World) -> Scene:
    c = await cast(world)
    _, w, slice = await holding(c, 3)
    ask = Move("ask_session", lambda: cancel_job.ask_session(w.session, c.job.id, "", c.now))
    return Scene(left=[ask], right=[c.report(w, success(slice, 0, 2))])


# Promote and gates


@scene("promote / promote")
async def _(world: World) -> Scene:
    c = await cast(world)
    for _ in range(2):
        await world.parcel(c.job, 2, due_at=c.now + 1)
    c.now += 1

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(done.rows for done in left + right) == 2

    return Scene(left=[c.promote()], right=[c.promote()], check=check, patient="")


@scene("promote / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    await world.parcel(c.job, 2, due_at=c.now + 1)
    await world.parcel(c.job, 1)
    c.now += 1
    w = await world.worker()
    return Scene(left=[c.promote()], right=[c.claim(w, 2)], patient="")


@scene("claim that saw a pause / open_gate")
async def _(world: World) -> Scene:
    """The job was resumed while a server still believed that it is paused."""
    c = await cast(world)
    parcel = await world.parcel(c.job, 2)
    w = await world.worker()

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        states = await world.states(parcel)
        stuck = await world.store.gates_left_open()
        assert (states == ["waiting"] * 2) == (stuck == [c.job.id]), "an execution at an open gate is not found"

    return Scene(left=[c.claim(w, 2, paused=frozenset({c.job.id}))], right=[c.open_gate()], check=check, patient="")


@scene("open_gate / open_gate")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 2)
    w = await world.worker()
    await w.claim(2, paused=frozenset({c.job.id}))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(done.rows for done in left + right) == 1
        assert await world.states(parcel) == ["queued"] * 2

    return Scene(left=[c.open_gate()], right=[c.open_gate()], check=check, patient="")


@scene("open_gate / cancel")
async def _(world: World) -> Scene:
    c = await cast(world)
    parcel = await world.parcel(c.job, 2)
    w = await world.worker()
    await w.claim(2, paused=frozenset({c.job.id}))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert ((await world.states(parcel))[0] == "cancelled") == (verdict(right) == "cancelled")

    return Scene(left=[c.open_gate()], right=[c.cancel(parcel, 0)], check=check, patient="")


# Fire


async def timed(world: World, *, rules: Rules | None = None, fires: int = 1) -> tuple[Cast, UUID]:
    """Create a trigger with due fires."""
    c = await cast(world)
    trigger = await add_trigger(
        world, c.job, Interval(every=1_000_000, anchor=world.now()), rules or Rules(overlap="allow")
    )
    c.now += fires * 1_000_000
    return c, trigger


async def fired(world: World) -> tuple[int, int]:
    """Return ledger rows that fired, and executions."""
    rows = await world.rows("SELECT execution FROM fires WHERE disposition = 'fired'")
    items = await world.rows("SELECT coalesce(sum(n), 0) FROM parcels")
    return len({row[0] for row in rows}), int(items[0][0])


@scene("fire / fire")
async def _(world: World) -> Scene:
    c, _ = await timed(world, fires=2)
    await add_trigger(world, c.job, Interval(every=1_000_000, anchor=world.now()), Rules(overlap="allow"))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (4, 4), "a nominal fire was decided twice, or never"

    return Scene(left=[c.fire()], right=[c.fire()], check=check, patient="")


@scene("fire / fire, twice each")
async def _(world: World) -> Scene:
    c, _ = await timed(world, fires=1)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await fired(world) == (1, 1)

    return Scene(left=[c.fire(), c.fire()], right=[c.fire()], check=check, patient="")


@scene("fire / claim")
async def _(world: World) -> Scene:
    c, _ = await timed(world)
    w = await world.worker()
    return Scene(left=[c.fire()], right=[c.claim(w, 1)], patient="")


@scene("fire / pause")
async def _(world: World) -> Scene:
    c, trigger = await timed(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (row,) = await world.rows("SELECT next_fire_at, decided_through FROM timers WHERE trigger_id = $1", trigger)
        assert row[0] is None, "a paused trigger will fire"
        (last,) = await world.rows("SELECT max(last) FROM fires WHERE trigger_id = $1", trigger)
        assert last[0] is None or row[1] >= last[0], "a decided fire is undecided again"

    return Scene(left=[c.fire()], right=[c.pause()], check=check, patient=RIGHT)


@scene("fire / resume")
async def _(world: World) -> Scene:
    c, _ = await timed(world, fires=3)
    await world.store.write(c.pause().make)
    return Scene(left=[c.fire(), c.fire()], right=[c.resume()], patient=RIGHT)


@scene("fire / delete")
async def _(world: World) -> Scene:
    c, _ = await timed(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.rows("SELECT trigger_id FROM timers") == [], "a deleted trigger came back"
        rows, items = await fired(world)
        assert rows == items

    return Scene(left=[c.fire()], right=[c.delete()], check=check, patient=RIGHT)


@scene("fire / report of the last execution")
async def _(world: World) -> Scene:
    c, trigger = await timed(world, rules=Rules())
    await world.store.write(c.fire().make)
    w = await world.worker()
    (slice,) = await w.claim(1)
    c.now += 1_000_000

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        rows = await world.rows("SELECT disposition, execution FROM fires WHERE trigger_id = $1", trigger)
        assert len(rows) == 2
        assert all((execution is None) == (word == "skipped-overlap") for word, execution in rows)

    return Scene(left=[c.fire()], right=[c.report(w, success(slice))], check=check)


# Backfills


def backfilling(c: Cast, backfill: Backfill) -> Move:
    return Move("work_backfill", lambda: backfill_work.process(backfill.id, lead, c.new_id, c.now))


async def unrun(world: World, fires: int = 4, **backfill: Any) -> tuple[Cast, list[Backfill]]:
    """Create fires that one row of the ledger records as missed, and two backfills of them."""
    c, _ = await timed(world, rules=Rules(overlap="allow", misfire=Misfire(policy="skip"), grace=0), fires=fires)
    since = c.now - fires * 1_000_000
    await world.store.write(c.fire().make)
    asked = [
        Backfill(
            id=c.new_id(), namespace=NAMESPACE, job=c.job.id, since=since, until=c.now, created_at=c.now, **backfill
        )
        for _ in range(2)
    ]
    for one in asked:
        await world.store.write(lambda one=one: backfills.put(one))
    return c, asked


async def backfilled(world: World) -> tuple[int, int, int]:
    """Return ledger rows that were backfilled, recorded runs, and executions."""
    rows = await world.rows("SELECT first FROM fires WHERE disposition = 'backfilled'")
    runs = await world.rows("SELECT at FROM backfill_runs")
    items = await world.rows("SELECT coalesce(sum(n), 0) FROM parcels")
    return len(rows), len(runs), int(items[0][0])


@scene("backfill / backfill, the same fires")
async def _(world: World) -> Scene:
    c, (one, other) = await unrun(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await backfilled(world) == (4, 4, 4), "a fire ran twice, or never"

    return Scene(left=[backfilling(c, one)], right=[backfilling(c, other)], check=check)


@scene("backfill / backfill, one at two servers")
async def _(world: World) -> Scene:
    c, (one, _) = await unrun(world, max_concurrent=3)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await backfilled(world) == (3, 3, 3), "more executions were live than allowed"

    return Scene(left=[backfilling(c, one)], right=[backfilling(c, one)], check=check, patient="")


@scene("backfill / resume")
async def _(world: World) -> Scene:
    c, _ = await timed(world, fires=4)
    await world.store.write(c.pause().make)
    backfill = Backfill(
        id=c.new_id(), namespace=NAMESPACE, job=c.job.id, since=c.now - 4_000_000, until=c.now - 1_000_000,
        created_at=c.now,
    )  # fmt: skip
    await world.store.write(lambda: backfills.put(backfill))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await backfilled(world) == (3, 3, 3)
        rows = await world.rows("SELECT first, last FROM fires WHERE disposition = 'skipped-paused'")
        assert len(rows) == 1, "the fires of the pause are not covered once"

    return Scene(left=[backfilling(c, backfill)], right=[c.resume()], check=check)


@scene("backfill / delete")
async def _(world: World) -> Scene:
    c, (one, _) = await unrun(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (worked,) = left
        (row,) = await world.rows("SELECT state FROM backfills WHERE id = $1", one.id)
        made = (4, 4, 4) if worked.parcels else (0, 0, 0)
        assert await backfilled(world) == made
        assert row[0] == ("running" if worked.parcels else "cancelled")

    return Scene(left=[backfilling(c, one)], right=[c.delete()], check=check)


@scene("backfill / fire")
async def _(world: World) -> Scene:
    c, (one, _) = await unrun(world)
    c.now += 1_000_000

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert (await backfilled(world))[:2] == (4, 4)
        fates = await world.rows("SELECT disposition FROM fires ORDER BY last DESC LIMIT 1")
        assert fates == [("skipped-misfire",)], "the scheduler waited, or decided fires of others"

    return Scene(left=[backfilling(c, one)], right=[c.fire()], check=check, patient="")


# Submit


def receipts(results: list[Any]) -> list[Any]:
    answers = [answer for done in results for answer in done.answers]
    return [
        r for answer in answers for r in (answer.answer if isinstance(answer, submission.RepeatedRequest) else answer)
    ]


@scene("submit / submit, one key")
async def _(world: World) -> Scene:
    c = await cast(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        both = receipts(left + right)
        assert sorted(r.deduplicated for r in both) == [False, True], "a key was taken twice"
        assert len({r.execution_id for r in both}) == 1
        assert len(await world.on("queued")) == 1

    return Scene(
        left=[c.submit(*world.wanted(c.job, key="k"))], right=[c.submit(*world.wanted(c.job, key="k"))], check=check
    )


@scene("submit / submit, the same keys in two orders")
async def _(world: World) -> Scene:
    c = await cast(world)

    def batch(keys: str) -> Move:
        return c.submit(*(e for key in keys for e in world.wanted(c.job, key=key)))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert len({r.execution_id for r in receipts(left + right)}) == 3

    return Scene(left=[batch("abc")], right=[batch("cba")], check=check)


@scene("submit / submit, a key that has expired")
async def _(world: World) -> Scene:
    c = await cast(world)
    (old,) = await world.submit(c.job, key="k", key_for=5)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        both = receipts(left + right)
        assert sorted(r.deduplicated for r in both) == [False, True]
        assert old.execution_id not in {r.execution_id for r in both}, "an expired key was used"

    asked = world.wanted(c.job, key="k")
    return Scene(left=[c.submit(*asked, later=5)], right=[c.submit(*asked, later=5)], check=check)


@scene("refused submit / submit, a key that has expired")
async def _(world: World) -> Scene:
    """One side frees the key and then fails: the other may not use the expired key."""
    c = await cast(world)
    (old,) = await world.submit(c.job, key="k", key_for=5)
    asked = world.wanted(c.job, key="k")

    def refused() -> Script[None]:
        yield from c.submit(*asked, later=5).make()
        yield Fetch(COMMIT)
        raise Conflict("refused")

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        (fresh,) = receipts(right)
        assert fresh.execution_id != old.execution_id, "an expired key was used"
        assert not fresh.deduplicated
        (row,) = await world.rows("SELECT until FROM unique_keys")
        assert row[0] > c.now + 5, "a key was taken but not stored"

    fails = Move("submit, refused", refused, refusals=(Conflict,))
    return Scene(left=[fails], right=[c.submit(*asked, later=5)], check=check)


@scene("submit / submit, one request at two servers")
async def _(world: World) -> Scene:
    c = await cast(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        both = receipts(left + right)
        assert len({r.execution_id for r in both}) == 2, "a repeated request was executed twice"
        assert sum(isinstance(done.answers[0], submission.RepeatedRequest) for done in left + right) == 1

    asked = world.wanted(c.job, 2)
    return Scene(left=[c.submit(*asked, key="r")], right=[c.submit(*asked, key="r")], check=check)


@scene("submit / sweep of expired keys")
async def _(world: World) -> Scene:
    c = await cast(world)
    for key in "ab":
        await world.submit(c.job, key=key, key_for=5)
    now = c.now + 5

    def both() -> list[Any]:
        return [e for key in "ab" for e in world.wanted(c.job, key=key)]

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert [r.deduplicated for r in receipts(left)] == [False, False]
        kept = await world.rows("SELECT key FROM unique_keys WHERE until > $1", now)
        assert len(kept) == 2, "a new key was swept"

    return Scene(
        left=[c.submit(*both(), later=5)],
        right=[Move("forget_expired", lambda: housekeeping.forget_expired(now, 0))],
        check=check,
    )


@scene("submit / claim")
async def _(world: World) -> Scene:
    c = await cast(world)
    w = await world.worker()
    return Scene(left=[c.submit(*world.wanted(c.job, 2))], right=[c.claim(w, 1)], patient="")


# Jobs


def draft(job: TestJob, **changes: Any) -> job_changes.JobDraft:
    return job_changes.JobDraft(spec=structs.replace(job.spec, **changes))


@scene("edit / edit, dependencies on each other")
async def _(world: World) -> Scene:
    a, b = await world.job("a"), await world.job("b")
    now = world.now()

    async def edit(job: TestJob, upstream: TestJob) -> Move:
        before = await world.store.job(job.id, NAMESPACE)
        change = draft(job, dependencies=(str(upstream.id),))
        return Move("edit", lambda: job_changes.edit(before, change, world.env.new_id, now), refusals=(BadInput,))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert len(await world.rows("SELECT job FROM dependencies")) == 1, "two edits made a cycle"

    return Scene(left=[await edit(a, b)], right=[await edit(b, a)], check=check)


@scene("edit of the schedule / pause")
async def _(world: World) -> Scene:
    job = await world.job("a")
    now = world.now()
    await add_trigger(world, job, Interval(every=MINUTE, anchor=now), name="schedule")
    before = await world.store.job(job.id, NAMESPACE)
    when = NamedTrigger(trigger=Interval(every=2 * MINUTE, anchor=now))
    change = job_changes.JobDraft(spec=structs.replace(job.spec, description="slower"), whens=[when])
    edit = Move("edit", lambda: job_changes.edit(before, change, world.env.new_id, now))
    pause = Move("pause", lambda: job_changes.pause(before, now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(left + right) == [False, True], "two changes were made to one version"
        (row,) = await world.rows("SELECT state FROM jobs WHERE id = $1", job.id)
        ((next_fire,),) = await world.rows("SELECT next_fire_at FROM timers WHERE job = $1", job.id)
        assert (row[0] == "paused") == (next_fire is None), "a paused trigger will fire"

    return Scene(left=[edit], right=[pause], check=check)


@scene("create / rename, one name")
async def _(world: World) -> Scene:
    job = await world.job("a")
    before = await world.store.job(job.id, NAMESPACE)
    fresh, now = world.env.new_id(), world.now()
    create = Move(
        "create",
        lambda: job_changes.create(fresh, NAMESPACE, draft(job, name="b"), world.env.new_id, now),
        refusals=(Conflict,),
    )
    rename = Move(
        "edit", lambda: job_changes.edit(before, draft(job, name="b"), world.env.new_id, now), refusals=(Conflict,)
    )

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sum(isinstance(result, Conflict) for result in left + right) == 1
        assert len(await world.rows("SELECT id FROM jobs WHERE name = 'b'")) == 1

    return Scene(left=[create], right=[rename], check=check)


@scene("ensure_lane / ensure_lane")
async def _(world: World) -> Scene:
    make = Move("ensure_lane", lambda: lanes.ensure_lane(NAMESPACE, "new", ("gpu",), "", world.now()))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert left == right

    return Scene(left=[make], right=[make], check=check)


from tests.races import (  # noqa: E402
    adoption_scenes,  # noqa: F401
    alert_scenes,  # noqa: F401
    archive_scenes,  # noqa: F401
    calendar_scenes,  # noqa: F401
    circuit_scenes,  # noqa: F401
    dependency_scenes,  # noqa: F401
    event_scenes,  # noqa: F401
    failover_scenes,  # noqa: F401
    failure_scenes,  # noqa: F401
    hold_scenes,  # noqa: F401
    limit_scenes,  # noqa: F401
    meeting_scenes,  # noqa: F401
    namespace_scenes,  # noqa: F401
    owned_scenes,  # noqa: F401
    placement_scenes,  # noqa: F401
    preempt_scenes,  # noqa: F401
    rollout_scenes,  # noqa: F401
    signal_scenes,  # noqa: F401
    template_scenes,  # noqa: F401
    trigger_scenes,  # noqa: F401
    user_scenes,  # noqa: F401
    workflow_scenes,  # noqa: F401
)
