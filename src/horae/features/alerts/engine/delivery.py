"""The delivery of notices: each server claims notices that are due, tries to send them and records the outcomes.

Notices are delivered at least once. A claim lasts one minute; if the server dies, another server claims the notice
then. A failed notice is tried again for a day, with growing pauses. A slow receiver delays only its own notices,
because the number of concurrent tries is limited for each channel and each namespace, and a channel that fails
repeatedly is paused between tries. Servers send the notices, not workers, because alerts about lost workers must not
depend on workers.
"""

import asyncio
from collections import Counter

import structlog

from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env, Instant, Micros
from horae.errors import HoraeError, StoreUnavailable
from horae.features.alerts.engine.channels import AlertChannels
from horae.features.alerts.engine.chats import Undeliverable
from horae.features.alerts.engine.senders import OutgoingNotice, send
from horae.features.alerts.model.channel import secret_texts
from horae.features.alerts.model.notification import read_content
from horae.features.alerts.model.rule import NoticeState
from horae.features.alerts.store import notices as moves
from horae.features.alerts.store.notices import Notice, PendingChannel
from horae.model.base.duration import DAY, HOUR
from horae.model.base.redaction import Redactor
from horae.outbound.fetch import Outbound
from horae.store.contract import Store
from horae.store.tenancy import namespaces

CLAIM: Micros = 60 * SECOND
OF_CHANNEL, OF_NAMESPACE, OF_SERVER = 4, 8, 64  # the most concurrent tries
MOST_CHANNELS = 1000  # channels read in one step
INTERVAL = 5.0  # seconds between steps while notices are pending: other servers may have left some
QUIET = 30.0  # seconds between steps while no notice is pending
FIRST: Micros = 5 * SECOND  # the pause before the second try; each further pause is twice as long
LONGEST: Micros = HOUR
GIVE_UP: Micros = DAY
PATIENCE = 3  # a channel is paused after so many consecutive failures
LONGEST_PAUSE = 60.0  # seconds for which a channel is paused at most
STOP_WITHIN = 2.0  # seconds for running tries to end when the server stops
AGAIN = 1.0  # seconds between attempts to record an outcome, while the store is unavailable
Place = tuple[int, str]  # a namespace, and the name of a channel
log = structlog.get_logger("horae.engine")


class AlertDelivery:
    """The service that delivers notices."""

    name = "alert-delivery"

    def __init__(self, env: Env, store: Store, channels: AlertChannels, outbound: Outbound) -> None:
        self._env, self._store, self._channels, self._outbound = env, store, channels, outbound
        self._running: dict[asyncio.Task[None], Notice] = {}
        self._failures: Counter[Place] = Counter()  # failures in a row
        self._paused_until: dict[Place, float] = {}  # the end of the pause of each failing channel (monotonic)
        self._after: Place = moves.START  # the channel after which the next step begins to read
        self.deliveries: dict[NoticeState, int] = {"delivered": 0, "pending": 0, "failed": 0}  # tries, by outcome
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Start tries of due notices, within the limits. Each try that ends wakes the service for another step."""
        now = self._env.now()
        next_at = await self._store.read(moves.next_due)
        if next_at is None:
            self._failures.clear()  # some of the channels may be deleted
            self._paused_until.clear()
            return QUIET
        if next_at > now:
            return min(INTERVAL, (next_at - now) / SECOND)
        waiting = await self._store.read(lambda: moves.channels(self._after, MOST_CHANNELS))
        self._after = (waiting[-1].namespace, waiting[-1].channel) if len(waiting) == MOST_CHANNELS else moves.START
        for one in sorted(waiting, key=lambda one: one.next_at):
            if one.next_at <= now and (room := self._room((one.namespace, one.channel))) > 0:
                await self._begin(one, room)
        return INTERVAL

    async def settled(self) -> None:
        """Wait until all running tries have ended."""
        while self._running:
            await asyncio.wait(self._running)

    async def stop(self) -> None:
        """Wait briefly for running tries to end; cancel the others, so that another server tries their notices."""
        if self._running:
            await asyncio.wait(self._running, timeout=STOP_WITHIN)
        left = dict(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        now = self._env.now()
        for notice in left.values():
            try:
                await self._store.write(lambda notice=notice: moves.release(notice, now))  # type: ignore[misc]
            except StoreUnavailable:
                return

    def _room(self, place: Place) -> int:
        """Return how many more notices of a channel may be tried now."""
        if self._paused_until.get(place, 0.0) > self._env.clock.monotonic():
            return 0
        places = [(one.namespace, one.channel) for one in self._running.values()]
        of_channel = 1 if self._failures[place] >= PATIENCE else OF_CHANNEL
        of_namespace = sum(namespace == place[0] for namespace, _ in places)
        return min(of_channel - places.count(place), OF_NAMESPACE - of_namespace, OF_SERVER - len(places))

    async def _begin(self, one: PendingChannel, room: int) -> None:
        claimed = await self._store.change(lambda now: moves.claim(one.namespace, one.channel, now, now + CLAIM, room))
        for notice in claimed:
            task = asyncio.create_task(self._try(notice), name=f"horae-alert-{notice.id}")
            self._running[task] = notice
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self.alarm.ring()

    async def _try(self, notice: Notice) -> None:
        """Try a claimed notice. If the outcome cannot be recorded, the notice is claimed again when this claim ends."""
        try:
            state, _ = await self.deliver(notice)
        except StoreUnavailable as error:
            log.warning("the outcome of a notice could not be written", channel=notice.channel, error=error.detail)
            return
        except Exception:
            log.exception("a notice could not be tried", channel=notice.channel, rule=notice.rule)
            return
        self._update_pause((notice.namespace, notice.channel), state)

    def _update_pause(self, place: Place, state: NoticeState) -> None:
        if state == "delivered":
            self._failures.pop(place, None)
            self._paused_until.pop(place, None)
            return
        self._failures[place] += 1
        over = self._failures[place] - PATIENCE
        if over >= 0:
            self._paused_until[place] = self._env.clock.monotonic() + min(LONGEST_PAUSE, INTERVAL * 2 ** min(over, 10))

    async def deliver(self, notice: Notice) -> tuple[NoticeState, str]:
        """Try a claimed notice once and record the outcome.

        Return the new state of the notice, and the error or a remark on the delivery.
        """
        error, final, remark = await self._attempt(notice)
        now = self._env.now()
        state: NoticeState = "delivered" if error is None else "pending"
        if error is not None and (final or notice.kind == "test" or now - notice.created_at > GIVE_UP):
            state = "failed"
        if error is not None:
            log.warning("a notice was not delivered", channel=notice.channel, rule=notice.rule, error=error)
        self.deliveries[state] += 1
        done_at = None if state == "pending" else now
        next_at = now + self._pause(notice.attempts)
        await self._record(notice, state, next_at, error or remark, done_at)
        return state, error or remark

    async def _record(
        self, notice: Notice, state: NoticeState, next_at: Instant, error: str, done_at: Instant | None
    ) -> None:
        """Record the outcome of a try.

        While the store is unavailable, try again for half of the claim's duration, because a notice whose delivery is
        not recorded would be delivered again.
        """
        until = self._env.clock.monotonic() + CLAIM / SECOND / 2
        while True:
            try:
                await self._store.write(lambda: moves.settle(notice, state, next_at, error, done_at))
                return
            except StoreUnavailable:
                if self._env.clock.monotonic() > until:
                    raise
            await self._env.clock.sleep(AGAIN)

    def _pause(self, attempts: int) -> Micros:
        usual = min(LONGEST, FIRST << min(attempts - 1, 20))
        return int(usual * self._env.rng.uniform(0.75, 1.25))

    async def _attempt(self, notice: Notice) -> tuple[str | None, bool, str]:
        """Try to deliver a notice.

        Return the error (None if it was delivered), whether the error is final, so that another try is pointless, and a
        remark on the delivery. Secrets are removed from these texts.
        """
        secrets: list[str] = []
        try:
            channel = await self._channels.opened(notice.namespace, notice.channel)
            secrets = secret_texts(channel)
            remark = await send(self._outbound, channel, await self._outgoing(notice))
        except StoreUnavailable:
            raise
        except Undeliverable as error:
            return _redacted(str(error), secrets), error.final, ""
        except HoraeError as error:
            return _redacted(str(error), secrets), error.status == 404, ""
        except TimeoutError:
            return "the delivery took too long", False, ""
        except Exception as error:
            return _redacted(f"{type(error).__name__}: {error}", secrets), False, ""
        return None, False, _redacted(remark, secrets)

    async def _outgoing(self, notice: Notice) -> OutgoingNotice:
        found = await self._store.read(lambda: namespaces.by_id(notice.namespace))
        name = found.name if found is not None else ""
        at: Instant = self._env.now()
        body = notice.content.encode()
        return OutgoingNotice(notice.id, read_content(body), body, name, at)


def _redacted(text: str, secrets: list[str]) -> str:
    """Return a message in which the channel's secret values are replaced."""
    return " ".join(Redactor(secrets).text(text).split())[: moves.MOST_ERROR]
