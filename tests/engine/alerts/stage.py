"""Helpers for tests of alert rules: put a rule, read the firing alerts, and run executions one after the other."""

from base64 import b64encode
from typing import Any

from horae.engine.settings import EngineSettings
from horae.env import SECOND
from horae.features.alerts.part import AlertsPart
from horae.features.statistics.part import StatisticsPart
from horae.model.fleet.protocol import Exchange, Started
from tests.engine.explain_stage import Stage, Worker
from tests.store_contract.world import NAMESPACE

SETTINGS = EngineSettings(master_keys=b64encode(bytes(32)).decode())


async def rule(stage: Stage, kind: str, **more: Any) -> None:
    await stage.node.part(AlertsPart).rules.put(NAMESPACE, kind, {"kind": kind, **more})


async def firing(stage: Stage, seconds: float = 10) -> list[tuple[str, str]]:
    """Return the subjects and messages of the alerts that fire after a while."""
    await stage.pass_time(seconds)
    await stage.node.part(StatisticsPart).statistics.step()
    await stage.node.part(AlertsPart).watch.step()
    assert stage.node.part(AlertsPart).watch.failed == 0
    page = await stage.node.part(AlertsPart).alerts.list(NAMESPACE, state="firing")
    return [(alert.subject, alert.message) for alert in page.items]


async def began(stage: Stage, worker: Worker) -> None:
    """Report that all slices of a worker have started."""
    worker.n += 1
    held = [Started(parcel=s.parcel, lo=s.lo, hi=s.hi, attempt=s.attempt, at=stage.world.now()) for s in worker.holds]
    up = Exchange(channel=0, n=worker.n, free=0, wait=0, started=held)
    await stage.node.gateway.exchange(NAMESPACE, worker.session, up)


async def run(stage: Stage, worker: Worker, *ends: str, seconds: float = 1, **more: Any) -> None:
    """Run executions one after the other, each with an end and a duration."""
    for end in ends:
        assert await stage.starts(await stage.submit(**more))
        await began(stage, worker)
        stage.world.clock.advance(round(seconds * SECOND))
        await worker.end(end)
