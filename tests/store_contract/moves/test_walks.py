"""Random walks: in any order of operations, every item is on one shelf, once, and ends when work goes on.

A walk submits, claims, reports parts of slices that are held or no longer held, repeats exchanges, loses workers,
cancels, pauses and lets time pass. After every step the invariants hold; at the end all work is finished.
"""

import asyncio
import os
from collections import Counter
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.env import virtual_env
from horae.model.definitions.retry import RetryPolicy
from horae.model.fleet.protocol import Exchange
from horae.store.driver import Driver
from horae.store.executions.promote import LONG_AGO
from horae.store.open import open_store_driver
from tests.store_contract.auditing import audit_executions
from tests.store_contract.world import Worker, World, began, cancelled, failed, rank, released, success, suspended

SECOND = 1_000_000
FINAL = {"success", "failed", "cancelled"}


class Walk:
    """One random life of a store."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.rng = world, Random(seed)
        self.jobs = []
        self.parcels: dict[UUID, int] = {}
        self.workers: list[Worker] = []
        self.known = []  # every slice that was ever granted: reports may refer to any of them
        self.sent: list[tuple[Worker, Exchange]] = []
        self.grants: Counter[tuple[UUID, int, int]] = Counter()
        self.ended: dict[tuple[UUID, int], str] = {}
        self.paused: frozenset[UUID] = frozenset()

    async def begin(self) -> None:
        retry = RetryPolicy(retries=2, delay=SECOND)
        self.jobs = [
            await self.world.job("retried", retry=retry),
            await self.world.job("plain"),
            await self.world.job("once", delivery="at-most-once"),
        ]
        self.policies = {key: policy for job in self.jobs for key, policy in job.policy.items()}
        self.lanes = frozenset(job.lane for job in self.jobs)
        self.views = await self.world.views()
        for _ in range(2):
            await self.register()
            await self.submit()

    async def step(self) -> None:
        moves = [
            *[self.exchange] * 4, self.submit, self.serve, self.empty, self.repeat, self.lose, self.cancel, self.wait,
            self.pause, self.register,
        ]  # fmt: skip
        await self.rng.choice(moves)()

    async def submit(self) -> None:
        job, n = self.rng.choice(self.jobs), self.rng.randint(1, 8)
        due = self.rng.choice([0, 0, self.world.now() + self.rng.randint(1, 3) * SECOND])
        parcel = await self.world.parcel(job, n, due_at=due)
        self.parcels[parcel] = n

    async def register(self) -> None:
        if len(self.workers) < 4:
            self.workers.append(await self.world.worker(f"w{self.rng.random()}"))

    def worker(self) -> Worker | None:
        return self.rng.choice(self.workers) if self.workers else None

    def outcomes(self, most: int) -> list:
        """Return reports about parts of slices, held or not, with bounds that need not match."""
        said = []
        for slice in self.rng.sample(self.known, min(len(self.known), self.rng.randint(0, most))):
            lo = self.rng.randint(slice.lo, slice.hi - 1)
            hi = self.rng.randint(lo + 1, slice.hi + 2)
            make = self.rng.choice([success, success, success, failed, cancelled, released, None])
            at = self.world.now() + SECOND
            said.append(make(slice, lo, hi) if make else suspended(slice, at, lo, hi))
        return said

    async def exchange(self) -> None:
        if (w := self.worker()) is None:
            return
        channel = self.rng.randint(0, 1)
        started = [began(s, self.world.now()) for s in self.rng.sample(self.known, min(1, len(self.known)))]
        up = Exchange(
            channel=channel, n=w.numbers[channel] + 1, free=self.rng.randint(0, 4), outcomes=self.outcomes(3),
            started=started if self.rng.random() < 0.2 else [],
        )  # fmt: skip
        await self.send(w, up)

    async def repeat(self) -> None:
        """Send a delayed copy of an exchange: its outcomes are idempotent, and its number is taken or refused."""
        if self.sent:
            await self.send(*self.rng.choice(self.sent))

    async def send(self, w: Worker, up: Exchange) -> None:
        head = w.head(up, self.lanes, patient=self.rng.random() < 0.3)
        done = await self.world.store.exchange([head], self.views, self.paused, self.policies, self.rng)
        (reply,) = done.replies
        self.sent = [*self.sent[-20:], (w, up)]
        self.granted(reply.granted)
        if reply.decision == "answer":
            w.numbers[up.channel] = max(w.numbers[up.channel], up.n)

    async def serve(self) -> None:
        parked = [w.parked(self.rng.randint(1, 4), self.lanes) for w in self.workers]
        done = await self.world.store.claim_for_parked(parked, self.views, self.paused)
        self.granted(done.running)
        for s in done.running:
            next(w for w in self.workers if w.session == s.session).numbers[s.channel] = s.n

    async def empty(self) -> None:
        if (w := self.worker()) is not None:
            emptied = await self.world.store.answer_empty([(w.session, 0, w.numbers[0] + 1)])
            w.numbers[0] += emptied[w.session, 0][0] == "empty"

    def granted(self, slices: list) -> None:
        self.known += slices
        for s in slices:
            self.grants.update((s.parcel, item, s.attempt) for item in range(s.lo, s.hi))

    async def lose(self) -> None:
        if (w := self.worker()) is None or self.rng.random() < 0.5:
            return
        self.workers.remove(w)
        if self.rng.random() < 0.7:
            await w.lose()
            charge = True
        else:
            await self.world.store.close_session(w.session)
            charge = False
        while (effects := await self.world.store.rescue(w.session, 2, charge=charge)).moved or effects.ended:
            pass

    async def cancel(self) -> None:
        if self.parcels:
            parcel = self.rng.choice(list(self.parcels))
            await self.world.store.cancel(parcel, self.rng.randrange(self.parcels[parcel]), "")

    async def pause(self) -> None:
        """Pause a job; servers learn of it late, so the sweep finds executions that a claim set aside."""
        job = self.rng.choice(self.jobs)
        self.paused = self.paused ^ {job.id}
        if job.id not in self.paused:
            await self.world.store.open_gate(job.id, 100, rank)

    async def wait(self) -> None:
        self.world.clock.advance(self.rng.randint(0, 2) * SECOND)
        await self.world.store.promote_due(LONG_AGO, self.rng.randint(1, 20), rank)

    async def check(self) -> None:
        await self.world.check()
        assert all(times == 1 for times in self.grants.values()), "an attempt of an item was granted twice"
        for lo, hi, state, parcel in await self.world.rows("SELECT lo, hi, state, parcel FROM history"):
            for item in range(lo, hi):
                assert self.ended.setdefault((parcel, item), state) == state, "a final state changed"

    async def finish(self) -> None:
        """Let all workers report their slices until nothing is left."""
        self.paused = frozenset()
        self.workers.append(await self.world.worker("last"))
        for _ in range(200):
            self.world.clock.advance(5 * SECOND)
            for job in await self.world.store.gates_left_open():
                await self.world.store.open_gate(job, 100, rank)
            await self.world.store.promote_due(LONG_AGO, 1000, rank)
            for w in self.workers:
                reply = await w.report(
                    *map(success, await w.holds()), free=20, views=self.views, policies=self.policies
                )
                self.granted(reply.granted)
            if not any([await self.world.on(shelf) for shelf in ("waiting", "queued", "running")]):
                break
        await self.check()
        assert len(self.ended) == sum(self.parcels.values()), "an execution never ended"
        assert set(self.ended.values()) <= FINAL


async def walk(world: World, seed: int, steps: int) -> None:
    life = Walk(world, seed)
    await life.begin()
    for _ in range(steps):
        await life.step()
        await life.check()
    await life.finish()


async def new_world() -> tuple[World, Driver]:
    env = virtual_env()
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    return World(driver, env), driver


@settings(max_examples=1000 if os.environ.get("HORAE_PROVE") else 60)
@given(st.integers(0, 2**32))
def test_a_random_walk_in_memory(seed: int):
    async def run() -> None:
        world, driver = await new_world()
        try:
            await walk(world, seed, 40)
        finally:
            await driver.close()

    asyncio.run(run())


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_random_walk_on_every_store(world: World, seed: int):
    await walk(world, seed, 60)


async def test_the_walk_would_notice_a_lost_item(world: World):
    life = Walk(world, 3)
    await life.begin()
    await world.do("UPDATE queued SET lo = lo + 1")
    await world.do("UPDATE waiting SET lo = lo + 1")

    report = await world.store.read(lambda: audit_executions(world.now(), None))
    assert {f.kind for f in report.findings} == {"missing"}
    await world.wipe()
