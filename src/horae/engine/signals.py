"""Signals: what executions that wait are told, by whoever may."""

from uuid import UUID, uuid5

from msgspec import Raw

from horae.engine.executions import Executions
from horae.engine.hints import Hint, Hints
from horae.env import Env
from horae.errors import BadInput, Busy, Conflict, TooLarge
from horae.model.awaits import MOST_KEPT, Signal
from horae.model.ids import index_of, parcel_of
from horae.model.parcel import check_item
from horae.model.protocol import MAX_SIGNAL, MAX_SIGNAL_NAME
from horae.model.signal_view import SignalView
from horae.store.contract import Store
from horae.store.moves import signals

TRIES, PAUSES = 100, 10  # at once, and after a pause each
PAUSE = 0.05  # seconds


class Signals:
    """Sends signals to executions that have not ended."""

    def __init__(self, env: Env, store: Store, executions: Executions, hints: Hints) -> None:
        self._env, self._store, self._executions, self._hints = env, store, executions, hints

    async def send(
        self, namespace: int, ref: str | UUID, name: str, payload: Raw, key: str | None = None
    ) -> SignalView:
        """Tell an execution something; with a key, once, however often it is sent.

        Raises NotFound, Gone, Conflict when it has ended or too many signals wait, and Busy when it cannot be caught.
        """
        _check(name, payload)
        execution = (await self._executions.find(namespace, ref)).execution.id
        id = self._env.new_id() if key is None else uuid5(execution, key)
        signal = Signal(id=id, name=name, payload=bytes(payload) or b"null")
        sent = await self._send(execution, signal)
        if sent.verdict == "final":
            remedy = "It waits for nothing any more; look at it with `horae executions show`."
            raise Conflict(f"Execution {execution} has ended.", remedy)
        if sent.verdict == "full":
            said = f"{MOST_KEPT} signals wait for execution {execution} already."
            raise Conflict(said, "Send more when it has taken some.")
        self._hints.tell(Hint(wake_at=sent.wake_at))
        return SignalView(execution_id=execution, name=name, delivered=sent.verdict == "delivered")

    async def _send(self, execution: UUID, signal: Signal) -> signals.Sent:
        """An execution that is on its way from one state to another is tried again."""
        parcel, item = parcel_of(execution), index_of(execution)
        for tried in range(TRIES + PAUSES):
            if tried >= TRIES:
                await self._env.clock.sleep(PAUSE)
            now = self._env.now()
            sent = await self._store.write(lambda: signals.send(parcel, item, signal, now))  # noqa: B023
            if sent.verdict not in ("moving", "unknown"):
                return sent
        raise Busy("The execution was on its way from one state to another whenever it was to be told.")


def _check(name: str, payload: Raw) -> None:
    if not name or len(name) > MAX_SIGNAL_NAME or "\0" in name:
        raise BadInput("A signal needs a name.", f"It has 1 to {MAX_SIGNAL_NAME} characters.", field="name")
    if len(payload) > MAX_SIGNAL:
        raise TooLarge(f"The payload has {len(payload)} bytes.", f"{MAX_SIGNAL} are allowed; send a reference.")
    if payload:
        check_item(b'{"payload":' + bytes(payload) + b"}", "payload")
