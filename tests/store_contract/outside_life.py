"""External input of a day: events, webhooks, and watched locations."""

from uuid import UUID

from horae.env import SECOND
from horae.features.events.store import event_reads, event_sweep, events, hooks, watches
from horae.features.events.store.hooks import Hook, HookSecret
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.values import NewEvent
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers import trigger_reads, triggers
from horae.store.triggers.targets import Target
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead


def fits(target: Target, item: bytes) -> str | None:
    return None


async def hear(world: World) -> None:
    """Receive events, count them, repeat them, send one to a single trigger, list them and delete them."""
    job = await world.job("hears", queue="outside")
    counting = Rules(overlap="skip", max_fires=100)
    await add_trigger(world, job, EventTrigger(event="upload", verify="signature"), counting, name="hook")
    given = [NewEvent(name="upload", id=id) for id in ("a", "b", "a")]
    for only in (None, (job.id, "hook"), None):
        await world.store.change(
            lambda now, only=only: events.take(NAMESPACE, given, lead, fits, world.env.new_id, now, only=only)
        )
    await world.store.change(
        lambda now: events.take(NAMESPACE, [NewEvent(name="upload")], lead, fits, world.env.new_id, now)
    )
    for name in (None, "upload"):
        await world.store.read(lambda name=name: event_reads.page(NAMESPACE, name, None, 10))
    await world.store.read(lambda: event_reads.listened_names(NAMESPACE))
    await world.store.read(lambda: trigger_reads.fired_by_events(job.id))
    await webhook(world, job.id)
    await watch(world)
    await world.store.write(lambda: event_sweep.sweep(Cutoffs(world.now() + SECOND, world.now() + SECOND, world.now())))


async def webhook(world: World, job: UUID) -> None:
    """Create a webhook, call it, change it and end it."""
    now = world.now()
    hook = Hook(
        hash=b"h", namespace=NAMESPACE, job=job, trigger="hook", secrets=[HookSecret("s")], created_at=now
    )  # fmt: skip
    await world.store.write(lambda: hooks.lock(job, "hook"))
    await world.store.write(lambda: hooks.add(hook))
    assert await world.store.read(lambda: hooks.find(b"h", now)) is not None
    await world.store.read(lambda: hooks.of_trigger(job, "hook", now))
    await world.store.write(lambda: hooks.set_secret(hook, "t", now + SECOND, now))
    await world.store.write(lambda: hooks.end(job, "hook", now + SECOND))


async def watch(world: World) -> None:
    """Scan a location with new, known and deleted objects; then pause the watch, then end it."""
    job = await world.job("watches", queue="outside")
    await add_trigger(world, job, WatchTrigger(url="s3://bucket/in/"), Rules(overlap="allow"), name="inbox")
    await world.store.read(watches.next_due)
    await world.store.read(watches.troubled)
    (poll,) = await world.store.change(lambda now: watches.lease_due(10, now))
    found = watches.FoundObject(object=UUID(int=1), event=NewEvent(name="inbox", id="1", scope="watch:1"))
    await world.store.read(lambda: watches.remembered_objects(poll.watch, [found.object]))
    await world.store.change(lambda now: watches.record_found(poll, [found], lead, fits, world.env.new_id, now))
    await world.store.change(lambda now: watches.mark_seen(poll, [found.object], now))
    await world.store.change(lambda now: watches.renew(poll, now))
    await world.store.write(lambda: watches.forget(poll, 10))
    await world.store.write(lambda: watches.fail(poll, "no", poll.began_at))
    await world.store.write(lambda: watches.finish(poll, 1, 0, poll.began_at))
    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    await world.store.change(lambda now: triggers.end(timer, now))
