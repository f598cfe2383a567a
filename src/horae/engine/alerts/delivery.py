"""Delivery: any server takes notices that are due, tries them, and says what came of it. At least once each.

A try is a claim for a minute; who dies meanwhile leaves the notice to others. What fails is tried again ever later, for
a day. Workers have no part in it: what tells that they are gone must not need them.
"""

import asyncio
from typing import Any

import structlog

from horae.engine.alerts.channels import AlertChannels
from horae.engine.alerts.senders import Letter, send
from horae.engine.alerts.undeliverable import Undeliverable
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import HoraeError, StoreUnavailable
from horae.model.alert import NoticeState
from horae.model.alert_notice import read_content
from horae.model.duration import DAY, HOUR
from horae.model.redaction import Redactor
from horae.outbound.fetch import Outbound
from horae.store.contract import Store
from horae.store.moves import alert_notices as moves
from horae.store.moves import namespaces
from horae.store.moves.alert_notices import Notice

CLAIM: Micros = 60 * SECOND
BATCH = 20  # tried at once
LOOK = 5.0  # seconds between looks at what others left
QUIET = 30.0  # while nothing is pending
FIRST: Micros = 5 * SECOND  # before the second try; each further one waits twice as long
LONGEST: Micros = HOUR
GIVE_UP: Micros = DAY
log = structlog.get_logger("horae.engine")


class AlertDelivery:
    """Delivers."""

    name = "alert-delivery"

    def __init__(self, env: Env, store: Store, channels: AlertChannels, outbound: Outbound) -> None:
        self._env, self._store, self._channels, self._outbound = env, store, channels, outbound
        self.deliveries: dict[NoticeState, int] = {"delivered": 0, "pending": 0, "failed": 0}  # tries, by outcome
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Try a batch; a full one asks to be called again at once."""
        now = self._env.now()
        next_at = await self._store.read(moves.next_due)
        if next_at is None:
            return QUIET
        if next_at > now:
            return min(LOOK, (next_at - now) / SECOND)
        claimed = await self._store.change(lambda now: moves.claim(now, now + CLAIM, BATCH))
        await asyncio.gather(*(self.deliver(notice) for notice in claimed))
        return 0.0 if claimed else LOOK

    async def deliver(self, notice: Notice) -> tuple[NoticeState, str]:
        """Try a notice that was claimed, and say what came of it."""
        error, final = await self._tried(notice)
        now = self._env.now()
        state: NoticeState = "delivered" if error is None else "pending"
        if error is not None and (final or notice.kind == "test" or now - notice.created_at > GIVE_UP):
            state = "failed"
        if error is not None:
            log.warning("a notice was not delivered", channel=notice.channel, rule=notice.rule, error=error)
        self.deliveries[state] += 1
        done_at = None if state == "pending" else now
        next_at = now + self._pause(notice.attempts)
        await self._store.write(lambda: moves.settle(notice, state, next_at, error or "", done_at))
        return state, error or ""

    def _pause(self, attempts: int) -> Micros:
        usual = min(LONGEST, FIRST << min(attempts - 1, 20))
        return int(usual * self._env.rng.uniform(0.75, 1.25))

    async def _tried(self, notice: Notice) -> tuple[str | None, bool]:
        """Why it was not delivered, without what is secret, and whether that is final."""
        private: dict[str, Any] = {}
        try:
            channel, private = await self._channels.opened(notice.namespace, notice.channel)
            await send(self._outbound, channel.kind, channel.public, private, await self._letter(notice))
        except StoreUnavailable:
            raise
        except Undeliverable as error:
            return _covered(str(error), private), error.final
        except HoraeError as error:
            return _covered(str(error), private), error.status == 404
        except TimeoutError:
            return "it took too long", False
        except Exception as error:
            return _covered(f"{type(error).__name__}: {error}", private), False
        return None, False

    async def _letter(self, notice: Notice) -> Letter:
        found = await self._store.read(lambda: namespaces.one(notice.namespace))
        name = found.name if found is not None else ""
        at: Instant = self._env.now()
        body = notice.content.encode()
        return Letter(notice.id, read_content(body), body, name, at)


def _covered(text: str, private: dict[str, Any]) -> str:
    """A message without the values that a channel keeps secret."""
    return " ".join(Redactor(_values(private)).text(text).split())[: moves.MOST_ERROR]


def _values(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [one for member in value.values() for one in _values(member)]
    if isinstance(value, list):
        return [one for member in value for one in _values(member)]
    return [value]
