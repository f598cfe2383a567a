"""Webhooks in the store: found by the hash of their token, as long as they and their trigger exist."""

import pytest

from horae.env import SECOND
from horae.features.events.store import event_sweep, hooks
from horae.features.events.store.hooks import Hook, HookSecret
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers import triggers
from tests.store_contract.world import NAMESPACE, World, add_trigger


async def made(world: World, trigger: EventTrigger | None = None) -> Hook:
    job = await world.job()
    await add_trigger(world, job, trigger or EventTrigger(verify="signature"), Rules(overlap="allow"), name="github")
    hook = Hook(
        hash=b"h" * 32,
        namespace=NAMESPACE,
        job=job.id,
        trigger="github",
        secrets=[HookSecret("s1")],
        created_at=world.now(),
    )
    await world.store.write(lambda: hooks.add(hook))
    return hook


async def find(world: World, hash: bytes = b"h" * 32):
    return await world.store.read(lambda: hooks.find(hash, world.now()))


async def test_a_webhook_is_found_with_its_trigger(world: World):
    hook = await made(world)

    assert await find(world) == (hook, EventTrigger(verify="signature"))
    assert await find(world, b"x" * 32) is None


@pytest.mark.parametrize("how", ["ended", "job deleted", "webhook taken away"])
async def test_a_webhook_ends_with_its_trigger(world: World, how: str):
    hook = await made(world)
    (timer,) = await world.store.read(lambda: triggers.of_job(hook.job))
    if how == "ended":
        await world.store.change(lambda now: triggers.end(timer, now))
    elif how == "job deleted":
        await world.do("UPDATE jobs SET state = 'deleted'")
    else:
        await world.do("""UPDATE triggers SET definition = '{"kind":"event","event":"x"}'""")

    assert await find(world) is None


async def test_the_url_of_a_removed_trigger_ends(world: World):
    hook = await made(world)
    (timer,) = await world.store.read(lambda: triggers.of_job(hook.job))
    await world.store.change(lambda now: triggers.end(timer, now))

    await world.do("UPDATE jobs SET state = 'deleted', deleted_at = $1", world.now())
    await world.store.write(lambda: event_sweep.sweep(Cutoffs(0, 0, world.now())))
    assert len(await world.rows("SELECT trigger FROM hooks")) == 1
    await world.do("UPDATE jobs SET state = 'active', deleted_at = NULL")
    await world.store.write(lambda: event_sweep.sweep(Cutoffs(0, 0, world.now())))
    assert await world.rows("SELECT trigger FROM hooks") == []


async def test_a_new_version_of_the_trigger_keeps_the_webhook(world: World):
    hook = await made(world)
    (timer,) = await world.store.read(lambda: triggers.of_job(hook.job))
    owner = triggers.Owner(hook.job, NAMESPACE, 2)
    when = timer.when
    await world.store.change(lambda now: triggers.replace(timer, world.env.new_id(), owner, when, "active", now))

    assert await find(world) is not None


async def test_an_old_secret_stays_valid_beside_the_new_one_for_a_while(world: World):
    hook = await made(world)
    until = world.now() + 10 * SECOND

    await world.store.change(lambda now: hooks.set_secret(hook, "s2", until, now))

    changed, _ = await find(world)
    assert changed.valid_secrets(world.now()) == ["s2", "s1"]
    world.clock.advance(10 * SECOND)
    changed, _ = await find(world)
    assert changed.valid_secrets(world.now()) == ["s2"]
    await world.store.change(lambda now: hooks.set_secret(changed, "s3", now, now))
    changed, _ = await find(world)
    assert [secret.text for secret in changed.secrets] == ["s3"]


async def test_an_old_url_works_for_a_while_and_is_deleted(world: World):
    hook = await made(world)
    until = world.now() + 10 * SECOND
    assert await world.store.write(lambda: hooks.end(hook.job, "github", until)) == 1

    assert await find(world) is not None
    world.clock.advance(10 * SECOND)
    assert await find(world) is None
    assert await world.store.read(lambda: hooks.of_trigger(hook.job, "github", world.now())) == []
    await world.store.write(lambda: event_sweep.sweep(Cutoffs(0, 0, world.now())))
    assert await world.rows("SELECT trigger FROM hooks") == []
