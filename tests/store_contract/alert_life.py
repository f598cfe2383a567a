"""The daily statements of alert rules, and of alerts and notices."""

from horae.env import SECOND
from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.model.rule import MissingSuccess
from horae.features.alerts.store import alerts, notices, reads, rules
from horae.model.base.duration import DAY
from tests.store_contract.world import NAMESPACE, World

RARE_ALERTS = {
    "firing_alerts",
    *("alert", "alert_page", "firing_alert_page", "alert_page_of_job", "acknowledge_alert", "notices_of_alerts"),
    *("firing_by_rule", "give_up_notices_of_channel", "sessions_not_lost", "end_alerts", "acknowledge_alerts_of_rule"),
}


async def watch(world: World) -> None:
    """Check every kind of rule once; open an alert, deliver its notices, and close it."""
    store, now = world.store, world.now()
    job = await world.job("watched", queue="watched")
    parcel = await world.parcel(job)
    named = MissingSuccess(after=DAY, subjects=("watched",), channels=("ops",))
    for rule in (named, MissingSuccess(after=DAY)):
        await store.read(lambda rule=rule: reads.jobs_of_rule(NAMESPACE, rule))
    for ask in (
        lambda: reads.recently_troubled(now // 60_000_000),
        lambda: reads.outcomes({job.id: SECOND}, now),
        lambda: reads.jobs_by_id([job.id]),
        lambda: reads.succeeded_within([job.id], 100 * DAY, now),
        lambda: reads.failures_in_a_row([job.id], 3),
        lambda: reads.recently_failed([job.id], 3),
        lambda: reads.recently_succeeded([job.id], now),
        lambda: reads.running_since(now),
        lambda: reads.silent_workers(NAMESPACE, now),
        lambda: reads.lost_workers(NAMESPACE),
        lambda: reads.late_fires(NAMESPACE, now),
        lambda: reads.troubled_triggers(NAMESPACE),
        lambda: reads.oldest_queued([job.lane]),
        lambda: reads.still_due([parcel], now),
        lambda: rules.active((0, "")),
        notices.next_due,
        lambda: notices.channels(notices.START, 10),
    ):
        await store.read(ask)  # type: ignore[arg-type]
    await world.do("UPDATE parcels SET deadline = $2 WHERE id = $1", parcel, now + SECOND)
    await store.read(lambda: reads.nearing_deadlines(now, now + SECOND, now))
    stored = await store.change(lambda now: rules.put_rule(NAMESPACE, "watched", named, now))
    await store.read(lambda: alerts.rules_with_open([stored]))
    for found in ([RuleFinding(subject="watched", message="")], [RuleFinding(subject="watched", message="")], []):
        await store.change(lambda now, found=found: alerts.settle(stored, found, world.env.new_id, now))
        world.clock.advance(120 * SECOND)
    for one in await store.change(lambda now: notices.claim(NAMESPACE, "ops", now, now + SECOND, 10)):
        await store.write(lambda one=one: notices.release(one, world.now()))
        await store.write(lambda one=one: notices.settle(one, "delivered", 0, "", world.now()))
    await store.write(lambda: notices.forget(0, 10))
    await store.write(lambda: alerts.forget(0, 10))
    await store.cancel(parcel, 0, "")
