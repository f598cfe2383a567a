"""Delivers a session's exchanges to the servers: each is repeated until it is answered."""

from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from horae.env import Env
from horae.errors import (
    Busy,
    ExchangeNumber,
    Forbidden,
    HoraeError,
    NotFound,
    ProtocolMismatch,
    SessionDetached,
    SessionEnded,
    Unauthorized,
)
from horae.model.fleet.protocol import Exchange
from horae.worker.interrupts import Interrupt
from horae.worker.session import WorkerSession
from horae.worker.transport import Transport

FATAL = (Unauthorized, Forbidden, ProtocolMismatch)  # servers refuse this worker
LOST = (SessionEnded, NotFound)  # the session has ended
FIRST_WAIT = 0.05  # seconds before a repetition
BROKEN_TRIES = 10  # internal errors of servers after which the data of an exchange is halved
log = structlog.get_logger("horae.worker")


class Delivered(Struct, frozen=True):
    """The effects of an answer on this worker."""

    interrupts: list[Interrupt] = []
    drain: bool = False
    reattach: bool = False  # the session has to be re-attached, by the caller


class Deliveries:
    """Delivers exchanges and re-attachments. Raises an error of LOST or FATAL when no repetition can help.

    `back_off` waits for about the given number of seconds, and returns the number of seconds for the next wait.
    """

    def __init__(self, env: Env, transport: Transport, back_off: Callable[[float], Awaitable[float]]) -> None:
        self._env, self._transport, self._back_off = env, transport, back_off

    async def exchange(self, session: WorkerSession, exchange: Exchange) -> Delivered:
        """Deliver an exchange. When its session is detached meanwhile, it stays unanswered."""
        wait, broken, era = FIRST_WAIT, 0, session.era
        while not session.ended and session.era == era:
            sent_at = self._env.clock.monotonic()
            try:
                answer = await self._transport.exchange(session.id, exchange)
            except SessionDetached:
                return Delivered(reattach=session.era == era and session.detach())
            except (*LOST, *FATAL):
                raise
            except Busy:
                wait = await self._back_off(wait)
            except HoraeError as error:
                broken += 1
                if error.status < 500 or broken >= BROKEN_TRIES:
                    exchange, broken = self._smaller(session, exchange, error), 0
                wait = await self._back_off(wait)
            else:
                if session.era != era:
                    break
                self._transport.add_servers(answer.servers)
                return Delivered(session.answered(exchange, answer, sent_at), answer.drain)
        return Delivered()

    def _smaller(self, session: WorkerSession, exchange: Exchange, error: HoraeError) -> Exchange:
        smaller = session.refused(exchange, str(error), error.fields.get("index"))
        if smaller is None or isinstance(error, ExchangeNumber):
            raise SessionEnded(error.detail, error.remedy) from error
        return smaller

    async def reattach(self, session: WorkerSession) -> list[Interrupt]:
        """Re-attach a session after a failover of the store. Its unanswered exchanges have to be delivered again."""
        wait = FIRST_WAIT
        while not session.ended:
            sent_at = self._env.clock.monotonic()
            try:
                answer = await self._transport.reattach(session.id, session.reattachment())
            except (*LOST, *FATAL):
                raise
            except HoraeError:
                wait = await self._back_off(wait)
            else:
                log.info("re-attached", session=str(session.id), stopping=len(answer.stop))
                return session.reattached(answer, sent_at)
        return []
