"""What only the store knows, asked each time that somebody reads the metrics."""

import asyncio
from collections import Counter

from msgspec import Struct, field

from horae.engine.base.survey import Survey, Table
from horae.engine.node import Node
from horae.errors import Busy, StoreUnavailable
from horae.server.http.promptly import heard

PATIENCE = 5.0  # seconds that the store has to answer; Prometheus itself waits for ten
LITTLE_PATIENCE = 1.0  # if it is known to be away


class Looked(Struct):
    """What the store said of all namespaces: the survey of the kernel, and the figures of features."""

    survey: Survey = field(default_factory=Survey)
    watches: int = 0
    backfills: Table = field(default_factory=Counter)
    fires: Table = field(default_factory=Counter)
    replays: Table = field(default_factory=Counter)
    alerts: Table = field(default_factory=Counter)


class Look:
    """Asks the store, once for all who read at the same time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._going: asyncio.Task[Looked] | None = None

    async def now(self) -> Looked | None:
        """Return what the store says; None if it takes longer than readers wait. Raises StoreUnavailable."""
        if self._going is None or self._going.done():
            self._going = asyncio.create_task(look(self._node), name="horae-metrics")
            self._going.add_done_callback(heard)
        going = self._going
        await asyncio.wait({going}, timeout=PATIENCE if self._node.ready else LITTLE_PATIENCE)
        if not going.done():
            return None
        try:
            return going.result()
        except StoreUnavailable:
            raise
        except Busy:
            return None


async def look(node: Node) -> Looked:
    """Ask for everything."""
    survey = await node.surveyor.look()
    looked, names = Looked(survey, await node.watcher.troubled()), survey.namespaces
    for (namespace, state), count in (await node.replays.counts()).items():
        looked.replays[names.get(namespace, ""), state] = count
    for (namespace, severity), count in (await node.alerts.firing()).items():
        looked.alerts[names.get(namespace, ""), severity] = count
    for one in await node.backfills.unfinished():
        looked.backfills[names.get(one.namespace, ""), one.job, one.state] = one.backfills
        for standing, count in one.fires.items():
            looked.fires[names.get(one.namespace, ""), one.job, standing] += count
    return looked
