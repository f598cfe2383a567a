"""Time zones: after an upgrade of tzdata, the next fires of triggers are computed anew in the background."""

from uuid import UUID

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.service import Alarm, Wait
from horae.env import Env
from horae.model.triggers.cron.zone import tzdata_version
from horae.store.contract import Store
from horae.store.triggers import zone_rules

log = structlog.get_logger("horae.engine")
BATCH = 500  # timers in one transaction
PAUSE = 0.02  # seconds between two transactions
AGAIN = 3600.0  # seconds between checks for timers that a server with older rules has computed since


class ZoneRules:
    """Updates timers to the newest time zone rules that any server has.

    A server with older rules logs a warning and does nothing.
    """

    name = "zone-rules"

    def __init__(self, env: Env, store: Store, hints: Hints, version: str | None = None) -> None:
        self._env, self._store, self._hints = env, store, hints
        self._version = version or tzdata_version()
        self._after: UUID | None = None
        self._changed = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check whether timers must be updated, or update one page of them."""
        if self._after is None and not await self._is_needed():
            return AGAIN
        after = self._after or zone_rules.FIRST
        done = await self._store.change(lambda now: zone_rules.retime(after, BATCH, now))
        self._changed += done.changed
        self._after = done.next
        if done.changed:
            self._hints.send(Hint(fire_at=self._env.now()))
        if done.next is not None:
            return PAUSE
        await self._store.change(lambda now: zone_rules.remember(self._version, now))
        say = log.info if self._changed else log.debug
        say("timers follow the time zone rules", rules=self._version, changed=self._changed)
        return AGAIN

    async def _is_needed(self) -> bool:
        """Return whether timers must be computed anew.

        This is so if this server's rules are newer than the stored version, or if the last pass changed timers, because
        a server with older rules may compute more of them.
        """
        known = await self._store.read(zone_rules.stored_version)
        again, self._changed = self._changed > 0, 0
        if known is not None and known > self._version:
            remedy = "upgrade the tzdata package here: this server computes by older rules"
            log.warning("this server's time zones are old", rules=self._version, newest=known, remedy=remedy)
            return False
        return known != self._version or again
