"""Scenes of alerts: one open alert per rule and subject, none for a paused rule, one sender per notification."""

from typing import Any

from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.model.rule import Lag
from horae.features.alerts.store import alerts
from horae.features.alerts.store import notices as alert_notices
from horae.features.alerts.store import rules as alert_rules
from horae.features.alerts.store.rules import StoredRule
from horae.model.base.duration import MINUTE
from horae.store.script import Script
from tests.races.scenes import scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import NAMESPACE, World

RULE = Lag(after=MINUTE, channels=("ops",))


async def written(world: World) -> StoredRule:
    return await world.store.change(lambda now: alert_rules.put_rule(NAMESPACE, "late", RULE, now))


def settle(world: World, stored: StoredRule, *subjects: str) -> Move:
    found = [RuleFinding(subject=subject, message="late") for subject in subjects]
    return Move("settle", lambda: alerts.settle(stored, found, world.env.new_id, world.now()))


@scene("two servers find the same alert by a rule")
async def _(world: World) -> Scene:
    stored = await written(world)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert sorted(one.notices for one in (left[0], right[0])) == [0, 1], "one of them opens it and notifies"
        assert len(await world.store.read(lambda: alerts.open_alerts(NAMESPACE, "late"))) == 1

    return Scene(left=[settle(world, stored, "a")], right=[settle(world, stored, "a")], check=check)


@scene("a rule is paused / an alert is found by it")
async def _(world: World) -> Scene:
    stored = await written(world)
    now = world.now()

    def paused() -> Script[None]:
        yield from alert_rules.lock(NAMESPACE)
        yield from alert_rules.rule(NAMESPACE, "late", lock=True)
        yield from alert_rules.set_rule_state(NAMESPACE, "late", "paused", now)
        yield from alert_rules.end_open(NAMESPACE, "late", now)

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        assert await world.store.read(lambda: alerts.open_alerts(NAMESPACE, "late")) == [], "the alert would never end"

    return Scene(left=[Move("pause", paused)], right=[settle(world, stored, "a")], check=check)


@scene("two servers take notifications / one was slow to settle")
async def _(world: World) -> Scene:
    stored, now = await written(world), world.now()
    await world.store.write(settle(world, stored, "a").make)
    (old,) = await world.store.write(lambda: alert_notices.claim(NAMESPACE, "ops", now, now, 5))
    take = Move("claim", lambda: alert_notices.claim(NAMESPACE, "ops", now, now + MINUTE, 5))
    late = Move("settle", lambda: alert_notices.settle(old, "failed", now, "", now))

    async def check(world: World, left: list[Any], right: list[Any]) -> None:
        taken = len(left[0]) + len(right[1])
        assert (right[0], taken) in ((True, 0), (False, 1)), (
            "only the server that claimed last settles it, and it is claimed once"
        )

    return Scene(left=[take], right=[late, take], check=check)
