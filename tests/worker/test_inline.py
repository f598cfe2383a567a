"""Durable code in the inline runner: stored steps, their names, and waiting times."""

import pytest

from horae import App, GiveUp, Retry, SignalTimeout
from horae.model.executions.job_exceptions import BadResult, Cancelled, NotDurable, ResultTooLarge
from horae.testing import Crash, Inline, Waits
from horae.worker.code.durable import numbered_key

app = App()
HOUR = 3600


@pytest.fixture(autouse=True)
def effects():
    """Return a list of the effects of a test's steps."""
    DONE.clear()
    return DONE


DONE: list[object] = []


def do(what: object) -> object:
    DONE.append(what)
    return what


@app.job(durable=True)
async def journey(ctx) -> list[object]:
    """Use every kind of step once."""
    a = await ctx.step("a", do, "a1")
    b = await ctx.step("a", do, "a2")
    await ctx.sleep("1h")
    told = await ctx.wait_for("go", timeout="2h")
    both = await ctx.gather(ctx.step("l", do, "l"), ctx.step("r", do, "r"), ctx.sleep("3h"))
    state = await ctx.restored(0)
    while state < 3:
        state += 1
        await ctx.checkpoint(state)
    return [a, b, told, both, state]


@app.job(durable=True)
def journey_sync(ctx) -> list[object]:
    sync = ctx.sync
    a = sync.step("a", do, "a1")
    b = sync.step("a", do, "a2")
    sync.sleep("1h")
    told = sync.wait_for("go", timeout="2h")
    both = sync.gather(ctx.step("l", do, "l"), ctx.step("r", do, "r"), ctx.sleep("3h"))
    state = sync.restored(0)
    while state < 3:
        state += 1
        sync.checkpoint(state)
    return [a, b, told, both, state]


BESIDE = 5  # the step before another one that ran and was not stored
REMEMBERED = 10  # two steps, a sleep, a wait, two steps and a sleep, three checkpoints


@pytest.mark.parametrize("job", [journey, journey_sync], ids=["async", "sync"])
@pytest.mark.parametrize("crash", [None, *range(1, REMEMBERED + 1)])
async def test_a_function_killed_after_any_stored_step_does_everything_once(job, crash, effects):
    run = Inline(job, crash_after=crash)
    run.signal("go", {"n": 1})
    assert await run.finish() == ["a1", "a2", {"n": 1}, ["l", "r", None], 3]

    beside = ["r"] if crash == BESIDE else []  # it had run, and was not stored yet
    assert sorted(map(str, effects)) == ["a1", "a2", "l", "r", *beside]
    assert run.slept == 4 * HOUR
    assert [a.outcome for a in run.attempts].count("crashed") == (crash is not None)
    assert run.failures == 0


async def test_code_may_change_between_attempts(effects):
    run = Inline(journey, crash_after=2)
    run.signal("go")
    with pytest.raises(Crash):
        await run.attempt()

    @app.job("changed", durable=True)
    async def changed(ctx) -> list[object]:
        new = await ctx.step("new", do, "new")
        second_first = await ctx.step("a", do, "another a")
        return [new, second_first, await ctx.step("a", do, "and another"), await ctx.step("a", do, "third")]

    run._job = changed
    assert await run.finish() == ["new", "a1", "a2", "third"]
    assert effects == ["a1", "a2", "new", "third"]


@pytest.mark.parametrize(
    ("name", "count", "key"),
    [("a", 1, "a"), ("a", 2, "a#2"), ("a#2", 1, "a#2#1"), ("a#2", 2, "a#2#2"), ("a#", 1, "a#"), ("#1", 1, "#1#1")],
)
def test_names_with_counts_are_distinct(name, count, key):
    assert numbered_key(name, count) == key


async def one(body, **how):
    """Run a function that is a job only in this test."""
    job = App().job("one", durable=how.pop("durable", True), **how)(body)
    run = Inline(job)
    return run, await run.finish()


async def test_a_step_is_retried_by_its_own_rule(effects):
    async def body(ctx) -> str:
        return await ctx.step("flaky", flaky, retries=3, backoff="10s")

    def flaky() -> str:
        DONE.append("try")
        if len(DONE) < 3:
            raise OSError("not yet")
        return "there"

    run, result = await one(body)
    assert (result, len(effects), run.slept, run.failures) == ("there", 3, 30, 0)
    assert ["flaky" in line for line in run.log] == [True, True]


@pytest.mark.parametrize(
    ("error", "backoff", "slept"),
    [(OSError("x"), ["1s", "2s"], 5), (Retry("x", after="7s"), None, 21), (GiveUp("x"), None, 0)],
)
async def test_delays_between_tries_of_a_step(error, backoff, slept):
    runs = []

    async def body(ctx) -> None:
        await ctx.step("flaky", fail, retries=3, backoff=backoff)

    def fail() -> None:
        raise error

    job = App().job("one", durable=True)(body)
    runs.append(Inline(job))
    with pytest.raises(type(error)):
        await runs[0].finish()
    assert runs[0].slept == slept


async def test_other_branches_are_finished_and_stored_if_one_fails(effects):
    async def body(ctx) -> list[object]:
        def left() -> str:
            if ctx.failures == 0:
                raise OSError("left")
            return do("left")

        return await ctx.gather(ctx.step("left", left), ctx.step("right", do, "right"))

    _, result = await one(body, retries=1)
    assert (result, effects) == (["left", "right"], ["right", "left"])


async def test_gather_runs_at_most_so_many_at_once():
    running, most = set(), []

    async def body(ctx) -> None:
        async def part(i: int) -> None:
            running.add(i)
            most.append(len(running))
            await ctx.sleep("1ms")
            running.remove(i)

        await ctx.gather(*(ctx.step(f"s{i}", part, i) for i in range(6)), limit=2)

    await one(body)
    assert max(most) == 2


async def test_an_endless_wait_without_a_signal_is_reported():
    async def body(ctx) -> None:
        await ctx.wait_for("never")

    with pytest.raises(Waits, match="never"):
        await one(body)


async def test_a_timeout_has_its_own_error_and_is_stored():
    async def body(ctx) -> str:
        try:
            await ctx.wait_for("never", timeout="1d")
        except SignalTimeout:
            await ctx.sleep("1h")
            return "late"
        return "in time"

    run, result = await one(body)
    assert (result, run.slept) == ("late", 25 * HOUR)


async def test_a_filter_chooses_among_signals():
    async def body(ctx) -> int:
        return await ctx.wait_for("n", filter="${signal.payload > 1}")

    run = Inline(App().job("one", durable=True)(body))
    run.signal("n", 1)
    run.signal("n", 2)
    assert await run.finish() == 2


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda ctx: ctx.step("big", lambda: "x" * 2_000_000), ResultTooLarge, "1048576"),
        (lambda ctx: ctx.step("odd", lambda: {1j: 2}), BadResult, "JSON"),
        (lambda ctx: ctx.checkpoint("x" * 70_000), ResultTooLarge, "65536"),
        (lambda ctx: ctx.step("@sleep", int), ValueError, "Horae's own"),
        (lambda ctx: ctx.step("", int), ValueError, "1 to 400"),
        (lambda ctx: ctx.sleep(), TypeError, "until="),
        (lambda ctx: ctx.gather(ctx.step("a", int), limit=0), ValueError, "at least 1"),
        (lambda ctx: ctx.wait_for("x" * 201), ValueError, "1 to 200"),
        (lambda ctx: ctx.transaction(object()), TypeError, "asyncpg"),
    ],
)
async def test_bad_input_is_refused(call, error, said):
    async def body(ctx) -> None:
        await call(ctx)

    with pytest.raises(error, match=said):
        await one(body)


async def test_only_durable_jobs_wait_without_a_worker():
    async def body(ctx) -> None:
        await ctx.wait_for("go")

    with pytest.raises(NotDurable, match="durable=True"):
        await one(body, durable=False)


async def test_a_cancelled_function_stops_at_its_next_step(effects):
    async def body(ctx) -> None:
        await ctx.step("a", do, "a")
        run.cancelled = True
        await ctx.step("b", do, "b")

    run = Inline(App().job("one", durable=True)(body))
    with pytest.raises(Cancelled):
        await run.finish()
    assert effects == ["a"]


def test_executions_have_separate_memories():
    assert len({Inline(journey).id for _ in range(5)}) == 5


async def test_submissions_of_a_function_are_made_once():
    async def body(ctx) -> str:
        child = await ctx.submit("other", {"n": 1})
        await ctx.sleep("1h")
        return child.id

    run, result = await one(body)
    assert len(run.submitted) == 1
    assert result == str(run._calls["1"][0].execution_id)
