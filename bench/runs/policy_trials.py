"""Effects of policies on waiting executions, each in its own trial, with reproducible figures."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from bench.runs.trial import TrialExecution, jain, trial
from horae.env import SECOND, Micros
from horae.model.admission.policy import QUANTUM

MS = SECOND // 1000
TENANTS = range(1, 11)  # each with its number as its weight
FAIR: Mapping[str, Any] = {
    "kind": "fair", "by": "${params.tenant}", "weights": {str(weight): weight for weight in TENANTS},
}  # fmt: skip


class Figure(Struct, frozen=True):
    """One figure of a trial, with its circumstances."""

    case: str
    metric: str
    value: float
    unit: str
    about: str


Trying = Callable[[int], Awaitable[list[Figure]]]


async def fairness(seconds: int) -> list[Figure]:
    """Compare ten tenants with weights 1 to 10 and more work than they get; the first submits 100 times as much."""
    equal = dict.fromkeys(TENANTS, 200 * MS)
    apart = {tenant: 50 * MS if tenant % 2 else 5 * SECOND for tenant in TENANTS}
    return [
        await _jain("equal durations, parcels of 10", equal, 10, seconds, slots=20),
        await _jain("equal durations, parcels of 1,000", equal, 1000, seconds, slots=20),
        await _jain("durations 100 times apart, parcels of 1,000", apart, 1000, 3 * seconds, slots=10),
    ]


async def _jain(case: str, takes: Mapping[int, Micros], parcel: int, seconds: int, *, slots: int) -> Figure:
    async with trial(slots, ["work"]) as t:
        await t.queue("work", policy=FAIR)
        for tenant in TENANTS:
            await t.job(f"of-{tenant}", "work")
        start = t.now
        for tenant, length in takes.items():
            enough = int(1.5 * seconds * SECOND * slots * tenant / sum(TENANTS) / length) + slots
            for _ in range(0, enough if tenant > 1 else 100 * enough, parcel):
                t.submit_many(start, f"of-{tenant}", [{"takes": length, "tenant": str(tenant)}] * parcel)
        await t.run(start + seconds * SECOND)
    index = jain([t.served("tenant").get(str(tenant), 0) / tenant for tenant in TENANTS])
    return Figure(f"fair: {case}", "Jain index", index, "", f"{len(t.ran):,} executions, {slots} slots, {seconds} s")


async def lightness(seconds: int) -> list[Figure]:
    """Measure a tenant with little work, beside one that submitted thousands."""
    slots, takes = 10, 100 * MS
    async with trial(slots, ["work"]) as t:
        await t.queue("work", policy={"kind": "fair", "by": "${params.tenant}"})
        await t.job("job", "work")
        start = t.now
        for _ in range(seconds * slots // 100 + 1):
            t.submit_many(start, "job", [{"takes": takes, "tenant": "heavy"}] * 1000)
        for i in range(1, 4 * seconds):
            t.submit(start + i * SECOND // 4 + i * 7 * MS, "job", takes, params={"tenant": "light"})
        await t.run(start + seconds * SECOND)
    waits = sorted(one.wait for one in t.ran if one.params["tenant"] == "light")
    bound = takes / slots + QUANTUM * takes / slots
    about = f"{len(waits)} executions of {takes // MS} ms beside a backlog, {slots} slots; alone it waits 0 ms"
    return [
        Figure("fair: a light tenant", "p99 of its wait", waits[int(len(waits) * 0.99)] / MS, "ms", about),
        Figure("fair: a light tenant", "bound", bound / MS, "ms", "one service time / slots + one quantum"),
    ]


async def starvation(seconds: int) -> list[Figure]:
    """Measure executions of priority 0 beside a stream of priority 9 that takes all capacity."""
    ageing = 2 * SECOND
    async with trial(2, ["work"]) as t:
        await t.queue("work", policy={"kind": "priority", "ageing": ageing / SECOND})
        await t.job("job", "work")
        start = t.now
        for i in range(seconds * 5):
            t.submit(start + i * SECOND // 5, "job", 450 * MS, priority=9)
        for i in range(seconds // 10):
            t.submit(start + i * 7 * SECOND, "job", 450 * MS, priority=0, params={"least": True})
        await t.run(start + 3 * seconds * SECOND)
    least = [one for one in t.ran if one.params.get("least")]
    overtaken = sum(
        late.arrived_at > one.arrived_at + 9 * ageing and late.started_at < one.started_at
        for one in least
        for late in t.ran
        if not late.params.get("least")
    )
    about = f"{len(least)} of priority 0 in {seconds} s of priority 9, ageing {ageing // SECOND} s, load 112%"
    return [Figure("priority: a stream of level 9", "overtaken past the bound", overtaken, "executions", about)]


async def deadlines(seconds: int) -> list[Figure]:
    """Measure unit executions released together that can all be met, and a load of 115% with different deadlines."""
    rng, count = Random(11), 2 * seconds
    order = list(range(1, count + 1))
    rng.shuffle(order)
    together = [(0, k * SECOND) for k in order]
    over = [(int(i * SECOND / 1.15), int(i * SECOND / 1.15) + rng.randint(2, 60) * SECOND) for i in range(count)]
    figures = []
    for case, wanted in (("a feasible set", together), ("an overload of 115%", over)):
        for kind in ("deadline", "fifo"):
            missed = await _missed(kind, wanted)
            about = f"{count} executions of 1 s, one slot"
            figures.append(Figure(f"{kind}: {case}", "deadlines missed", missed, "executions", about))
    return figures


async def _missed(kind: str, wanted: Sequence[tuple[Micros, Micros]]) -> int:
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy=kind)
        await t.job("job", "work")
        start = t.now
        for at, deadline in wanted:
            t.submit(start + at, "job", SECOND, deadline=start + deadline)
        await t.run(start + 3 * len(wanted) * SECOND)
    return sum(one.deadline is not None and one.ended_at > one.deadline for one in t.ran)


async def shortness(seconds: int) -> list[Figure]:
    """Measure jobs with heavy-tailed lengths, at a load of 90%."""
    lengths = {"tiny": 100 * MS, "small": SECOND, "large": 10 * SECOND, "huge": 60 * SECOND}
    rng = Random(5)
    names = rng.choices(list(lengths), (70, 22, 7, 1), k=4 * seconds)
    mean = sum(lengths[name] for name in names) / len(names)
    figures = []
    for kind in ("shortest", "fifo"):
        ran = await _waits(kind, lengths, names, int(mean / 0.9))
        about = f"{len(names)} executions of 0.1 s to 60 s, one slot, load 90%"
        wait = sum(one.wait for one in ran) / len(ran) / SECOND
        figures.append(Figure(f"{kind}: a heavy tail", "mean wait", wait, "s", about))
        figures.append(
            Figure(f"{kind}: a heavy tail", "longest wait", max(one.wait for one in ran) / SECOND, "s", about)
        )
    return figures


async def _waits(kind: str, lengths: Mapping[str, Micros], names: Sequence[str], gap: Micros) -> list[TrialExecution]:
    async with trial(1, ["work"]) as t:
        await t.queue("work", policy=kind)
        for name, takes in lengths.items():
            await t.job(name, "work")
            t.submit(t.now, name, takes)
        await t.run(t.now + 200 * SECOND)  # the server learns their usual lengths
        start = t.now
        for i, name in enumerate(names):
            t.submit(start + i * gap, name, lengths[name])
        await t.run(start + 3 * len(names) * gap)
    return [one for one in t.ran if one.arrived_at >= start]


TRIALS: tuple[Trying, ...] = (fairness, lightness, starvation, deadlines, shortness)


async def all_trials(seconds: int) -> AsyncIterator[tuple[str, list[Figure]]]:
    """Yield every trial with its name."""
    for one in TRIALS:
        yield one.__name__, await one(seconds)
