"""All daily operations of a server, each once, and the statements that they run."""

from typing import Any

from msgspec import Struct, structs

from horae.env import SECOND
from horae.features.artifacts.store import artifacts
from horae.features.backfills.store import backfills
from horae.features.statistics.store import statistics
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.definitions.retry import RetryPolicy
from horae.model.executions import submission
from horae.model.executions.execution import Extra
from horae.model.executions.output.artifact import Artifact
from horae.model.executions.tally import JobTally, NamespaceTally, OutcomeCounts
from horae.model.fleet.protocol import Exchange, Step
from horae.model.fleet.server import ServerProcess
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.driver import op_name
from horae.store.executions.durable import steps
from horae.store.executions.promote import LONG_AGO
from horae.store.executions.reads import execution_reads, housekeeping
from horae.store.expiry.expiry import Cutoffs
from horae.store.fleet import backstop, sessions
from horae.store.script import Lock, Op, Provided, ScriptFactory, Together
from horae.store.tenancy import keys
from horae.store.tenancy.holdings import all_holdings
from horae.store.triggers import turns
from horae.store.triggers.dependencies import due_joins, joins
from horae.store.triggers.targets import targets
from tests.statements import by_module, within
from tests.store_contract.alert_life import RARE_ALERTS, watch
from tests.store_contract.circuit_life import fail_often
from tests.store_contract.failure_life import RARE_FAILURES, suffer
from tests.store_contract.fleet_life import give_way
from tests.store_contract.limit_life import RARE_LIMITS, limit
from tests.store_contract.outside_life import hear
from tests.store_contract.placement_life import place
from tests.store_contract.policy_life import divide
from tests.store_contract.rare import OUTSIDE, RARE_MODULES
from tests.store_contract.sharing_life import RARE_SHARING, share
from tests.store_contract.signal_life import be_told
from tests.store_contract.workflow_life import RARE_WORKFLOWS, flow
from tests.store_contract.world import (
    NAMESPACE,
    World,
    add_trigger,
    began,
    failed,
    lead,
    lines,
    progress,
    rank,
    success,
)

MINUTE = 60 * SECOND

RARE = {
    *("forget_artifacts", "pause_by_reason", "erase_some_events"),
    *("look_at_timers", "next_held_keys", "next_sequences"),
    *("duty_done", "duty_troubled", "trouble_of_duty"),
    *("attempts_of", "count_ended", "count_ended_of_job", "count_live", "count_live_of_job", "offers", "oldest_parcel"),
    *("delete_job", "edit_job", "job_version", "job_versions", "lock_job", "name_taken", "restore_job"),
    *("newest_job_version", "rollout_that_is_on"),
    *("backfill", "backfill_runs", "backfills", "live_backfill_runs", "lock_backfill", "set_backfill_state"),
    "standing_backfills",
    *("drop_dependent", "drop_some_dependencies", "jobs_below", "open_joins_of", "set_job_state", "upstream"),
    *("add_cookie", "add_key", "add_sign_in_code", "admin_keys", "cookie", "end_cookie", "keys"),
    *("old_sign_in_codes", "revoke_key", "revoke_key_of_cookie", "use_sign_in_code"),
    *("revoke_browsers_of_key", "revoke_codes_of_key", "replace_key"),
    *("end_browsers_of_key", "is_last_admin_key", "revoke_enrolments_of"),
    *("present_versions", "some_hooks", "replace_hook_secrets"),
    *("detach_old_epoch", "end_detached", "attach_session", "held_by_detached"),  # once after a failover
    *RARE_SHARING,
    *RARE_LIMITS,
    *RARE_ALERTS,
    *RARE_FAILURES,
    *RARE_WORKFLOWS,
    *("execution_sizes", "open_approvals", "step_states"),
    *("ended_within", "known_of_minutes", "lost_servers"),
    "take_lost_server",
    *(
        "adopt_session",
        "ask_drain",
        "end_old_epoch",
        "lock_old_epoch",
        "orphans",
        "server_gone",
        "session_of_worker",
        "sessions",
        "sessions_in_brief",
    ),
}


class Asked(Struct, frozen=True):
    """A statement, and whether it ran in a writing transaction."""

    op: Op
    writes: bool


async def live_through(world: World) -> None:
    """Submit, claim, report, retry, cancel, promote, fire, lose, rescue and sweep: run all daily statements."""
    job = await world.job(retry=RetryPolicy(retries=3))
    policies = {(job.id, 1): job.spec.retry}
    wanted = world.wanted(job, 1, key="k")
    for _ in range(2):
        await world.store.submit([submission.Submission(executions=wanted, idempotency=None)])
    await repeat_requests(world, job)
    waiting = await world.worker("c")
    assert (await world.hand_over(job, 1, waiting.parked(1, frozenset({job.lane})))).running
    await world.parcel(job, 8)
    await world.parcel(job, 2, due_at=world.now() + SECOND)
    every = Interval(every=MINUTE, anchor=world.now())
    broken = await add_trigger(world, job, every)
    await add_trigger(world, job, every, Rules(overlap="skip"))
    await add_trigger(world, job, every, Rules(overlap="queueOne"), "turn")
    await world.do("UPDATE triggers SET definition = $2 WHERE id = $1", broken, "{}")
    worker, other = await world.worker("a"), await world.worker("b")
    await worker.claim(3)
    held = await worker.holds()
    await chatter(worker, held[0])
    await worker.report(failed(held[0]), *(success(slice) for slice in held[1:]), policies=policies)
    await world.store.cancel(held[-1].parcel, held[-1].lo, "")
    await world.store.cancel(world.env.new_id(), 0, "")
    await worker.claim(3)
    mine = (await worker.holds())[0]
    await world.store.cancel(mine.parcel, mine.lo, "")
    await world.store.claim_for_parked(
        [other.parked(2, frozenset(await world.all_lanes()))], await world.views(), frozenset()
    )
    await world.store.answer_empty([(worker.session, 1, 1)])
    for _ in range(2):
        world.clock.advance(MINUTE)
        await world.store.fire(100, lead)
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    await take_turns(world, turns.turn_key(job.id, "turn"))
    await world.store.write(lambda: targets([job.id]))
    await world.store.promote_due(LONG_AGO, 100, rank)
    await world.store.open_gate(job.id, 100, rank)
    await look(world, job, worker)
    await worker.lose()
    await world.store.rescue(worker.session, 100)
    await world.do("UPDATE queued SET losses = 9 WHERE losses > 0")
    await other.claim(50, channel=1)  # one of the lost executions, and those behind the rest of them
    await depend(world)
    await hear(world)
    await divide(world)
    await share(world)
    await be_told(world)
    await limit(world)
    await fail_often(world)
    await watch(world)
    await place(world)
    await give_way(world)
    await suffer(world)
    await flow(world)
    await clean(world)


async def depend(world: World) -> None:
    """Run jobs that start after others, wait for them, and are skipped with them."""
    a, b = await world.job("a", queue="up"), await world.job("b", queue="up")
    every = Interval(every=MINUTE, anchor=world.now())
    both = (str(a.id), str(b.id))
    d = await world.job("d", queue="down", dependencies=both)
    c = await world.job("c", queue="down", dependencies=both)
    await add_trigger(world, c, every)
    worker = await world.worker("d")
    patient = [structs.replace(one, patience=SECOND) for one in world.wanted(d, 2)]
    asked = await world.store.submit([submission.Submission(executions=patient)])
    await world.store.cancel(asked.parcels[0].id, 0, "")
    world.clock.advance(MINUTE)
    await world.store.fire(100, lead)
    interval = Extra(interval=(0, MINUTE))
    for job, extra, outcome in (
        (a, Extra(), success), (b, Extra(), success), (a, interval, success), (b, interval, failed),
        (a, Extra(), success),
    ):  # fmt: skip
        wanted = [structs.replace(one, extra=extra) for one in world.wanted(job)]
        await world.store.submit([submission.Submission(executions=wanted)])
        held = await worker.claim(1, lanes=frozenset({a.lane}))
        await worker.report(*(outcome(slice) for slice in held))
    world.clock.advance(MINUTE)
    await world.store.read(joins.next_due)
    await world.store.change(lambda now: due_joins.check_due_joins(100, world.env.new_id, now))
    await world.store.change(lambda now: joins.forget(now + 1, 10))


async def take_turns(world: World, key: str) -> None:
    """Read the executions that wait for a turn; end the holder and begin the next."""
    (one,) = await world.store.read(lambda: turns.blocked("", 10))
    assert one.holder is not None
    await world.store.change(lambda now: turns.pass_on("turn:nobody", rank, world.env.new_id, now))
    await world.store.cancel(parcel_of(one.holder), index_of(one.holder), "")
    await world.store.change(lambda now: turns.pass_on(key, rank, world.env.new_id, now))
    await world.store.write(lambda: turns.forget("", 10))


async def repeat_requests(world: World, job: Any) -> None:
    """Repeat a request, before and after its key has expired."""
    request = submission.Idempotency(NAMESPACE, "executions.submit", "r", b"h", world.now() + SECOND)
    asked = submission.Submission(executions=world.wanted(job), idempotency=request)
    for _ in range(2):
        await world.store.submit([asked])
    world.clock.advance(2 * SECOND)
    await world.store.submit([asked])
    keyed = submission.Idempotency(NAMESPACE, "executions.submit", "s", b"h", world.now() + SECOND)
    await world.store.submit([submission.Submission(executions=world.wanted(job, key="u"), idempotency=keyed)])
    until = world.now() + SECOND
    asked = submission.Idempotency(NAMESPACE, "jobs.create", "r", b"h", until)
    mine = await world.store.write(lambda: keys.reserve(asked, until, world.now()))
    assert isinstance(mine, keys.ReservedKey)
    await world.store.write(lambda: keys.reserve(asked, until, world.now()))
    await world.store.write(lambda: keys.store_answer(asked, mine, 200, b"{}"))
    await world.store.write(lambda: keys.release(asked, mine))
    await world.store.write(lambda: keys.record_use("k", world.now(), 0))


async def chatter(worker: Any, slice: Any) -> None:
    """Report starts, progress, log lines and steps of an execution."""
    world = worker.world
    await worker.exchange(
        started=[began(slice, world.now())],
        progress=[progress(slice, slice.lo, 5.0)],
        logs=[lines(slice, slice.lo, 0, "a", open=[(0, "stdout", "b")])],
    )
    await worker.exchange(logs=[lines(slice, slice.lo, 0, "a", "b")])
    await leave_behind(worker, slice)
    step = Step(parcel=slice.parcel, item=slice.lo, attempt=slice.attempt, name="pay", result=b"1")
    for _ in range(2):
        await world.store.write(lambda: steps.remember([(worker.session, step)], world.now()))


async def leave_behind(worker: Any, slice: Any) -> None:
    """Store an artifact of an execution, read it, and delete its content."""
    store, now = worker.world.store, worker.world.now()
    place = slice.parcel, slice.lo
    file = Artifact(
        name="a", attempt=slice.attempt, size=1, type="text/plain", sha256="", location="x/1", at=now
    )  # fmt: skip
    for _ in range(2):
        await store.write(lambda: artifacts.record_location("x/1", now))
        assert await store.write(lambda: artifacts.store_artifact(worker.session, *place, file, now)) == "stored"
    await store.read(lambda: artifacts.artifacts_of(*place, "", 10))
    await store.read(lambda: artifacts.artifact_of(*place, "a"))
    await store.write(lambda: artifacts.delete_orphaned_page(artifacts.START, 10, now))
    await store.read(lambda: artifacts.litter(now, 10))
    await store.write(lambda: artifacts.forget_deleted_locations(["x/1"]))


async def look(world: World, job: Any, worker: Any) -> None:
    """Run the reads of every second, every exchange and every request."""
    store, now = world.store, world.now()
    (slice, *_) = await worker.holds()
    for ask in (
        store.next_fire_at(), store.next_wake(), store.occupied(), store.paused_jobs(), store.watched_sessions(),
        store.gates_left_open(), store.identity(), store.directory(), store.troubled_triggers(),
        store.stamped_slices(worker.session, 0, 1), store.requests_of([worker.session]), store.parcels([slice.parcel]),
        store.definitions([(job.id, 1)]), store.job(job.id, NAMESPACE), store.job_named(NAMESPACE, "job"),
        store.session(worker.session), store.some_sessions([worker.session]),
        store.look([worker.head(Exchange(channel=2, n=1), frozenset(), patient=True)]),
    ):  # fmt: skip
        await ask
    await store.read(lambda: backstop.long_running(backstop.FIRST, now, 10))
    await store.read(lambda: sessions.servers(now))
    await store.read(lambda: steps.known_steps(slice.parcel, slice.lo, NAMESPACE))
    await store.read(lambda: sessions.count_of_key("key", 10))
    await store.read(lambda: execution_reads.by_id(execution_id(slice.parcel, slice.lo), NAMESPACE))
    await store.read(lambda: keys.by_id("k"))


async def clean(world: World) -> None:
    """Run the writes of every few seconds."""
    now, server = world.now(), world.env.new_id()
    seen = ServerProcess(id=server, url="http://a", host="a", pid=1, version="1", roles=("api",))
    await world.store.write(lambda: sessions.record_server(seen, now))
    counts = {(server, n): OutcomeCounts(success=1) for n in range(2)}
    await world.store.write(lambda: statistics.add(server, counts))
    for span in (3600, 86_400):
        await world.store.write(lambda: statistics.put_jobs(server, [((server, span, now), JobTally())]))  # noqa: B023
        key = (1, span, now)
        await world.store.write(lambda: statistics.put_namespaces(server, [(key, NamespaceTally())]))  # noqa: B023
    await world.store.read(lambda: statistics.namespaces_of([server]))
    await world.store.write(lambda: statistics.sweep(Cutoffs(now, now, now)))
    await world.store.write(lambda: housekeeping.take_duty("sweep", server, now, now + 1))
    await world.store.write(lambda: housekeeping.forget_expired(now, 0))
    await world.store.write(lambda: housekeeping.forget_records(0, 0))
    await world.store.write(lambda: backfills.sweep(Cutoffs(0, 0, 0)))
    await world.store.read(lambda: backfills.unfinished(10))
    await world.store.write(lambda: housekeeping.adopt_orphans(now))


async def recorded(world: World) -> dict[str, Asked]:
    """Return each distinct statement of all daily operations, by name."""
    found: dict[str, Asked] = {}
    driver: Any = world.store.driver

    def hooked(run: Any, writes: bool) -> Any:
        async def before(op: Op) -> None:
            for one in op.acting if isinstance(op, Together | Provided) else [op]:
                if not isinstance(one, Lock):
                    found.setdefault(op_name(one), Asked(one, writes))

        async def recording(make: ScriptFactory[object], **how: bool) -> object:
            driver.before = before
            try:
                return await run(make, **how)
            finally:
                driver.before = None

        return recording

    driver.write, driver.read = hooked(driver.write, True), hooked(driver.read, False)
    driver.change = hooked(driver.change, True)
    try:
        await live_through(world)
    finally:
        del driver.write, driver.read, driver.change
    return {name: asked for name, asked in sorted(found.items()) if name != "test"}


def statements() -> set[str]:
    """Return the names of all daily statements."""
    left_out = {module.__name__ for module in (*RARE_MODULES, *OUTSIDE)}
    loaded = {s.name for module, kept in by_module().items() if module not in left_out for s in kept}
    elsewhere = {s.name for module in RARE_MODULES for s in by_module().get(module.__name__, ())}
    of_namespaces = {statement.name for holdings in all_holdings() for statement in within(holdings)}
    return loaded - elsewhere - of_namespaces - RARE
