"""Signals: messages to waiting executions; and callbacks: signals to steps of workflows, by a URL of their own."""

from functools import partial
from uuid import UUID, uuid5

from msgspec import Raw

from horae.engine.base.hints import Hint, Hints
from horae.engine.base.tokens import new_callback_secret
from horae.engine.executions.executions import Executions
from horae.env import Env, Instant
from horae.errors import BadInput, Busy, Conflict, NotFound, TooLarge
from horae.model.base.ids import index_of, parcel_of
from horae.model.executions.parcel import check_item
from horae.model.executions.signal_waits import MOST_KEPT, Signal, SignalView
from horae.model.fleet.protocol import MAX_SIGNAL, MAX_SIGNAL_NAME
from horae.model.workflows.decisions.waits import CALLBACK, read_token
from horae.store.contract import Store
from horae.store.executions.durable import signals
from horae.store.script import Script
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows import by_hand as workflow_by_hand
from horae.store.workflows.workflow_run import keep_secret

TRIES, PAUSES = 100, 10  # tries without a pause, then tries with a pause before each
PAUSE = 0.05  # seconds


class SignalSender:
    """Sends signals to executions that have not ended."""

    def __init__(self, env: Env, store: Store, executions: Executions, hints: Hints) -> None:
        self._env, self._store, self._executions, self._hints = env, store, executions, hints

    async def send(
        self, namespace: int, ref: str | UUID, name: str, payload: Raw, key: str | None = None
    ) -> SignalView:
        """Send a signal to an execution. With a key, it is delivered once, however often it is sent.

        Raises NotFound, Gone, Conflict when the execution has ended or too many signals wait for it, and Busy when it
        changes its state too fast.
        """
        _check(name, payload)
        execution = (await self._executions.find(namespace, ref)).execution.id
        signal_id = self._env.new_id() if key is None else uuid5(execution, key)
        signal = Signal(id=signal_id, name=name, payload=bytes(payload) or b"null")
        sent = await self.deliver(execution, signal)
        if sent.verdict == "final":
            remedy = "See `horae executions show` for its result."
            raise Conflict(f"Execution {execution} has ended.", remedy)
        self._hints.send(Hint(wake_at=sent.wake_at))
        return SignalView(execution_id=execution, name=name, delivered=sent.verdict == "delivered")

    def _deliver(
        self, execution: UUID, signal: Signal, consequences: Consequences, now: Instant
    ) -> Script[signals.SignalResult]:
        """Deliver a signal to a step of a workflow, or to the execution itself."""
        sent = yield from workflow_by_hand.send(execution, signal, self._env.new_id, now, consequences)
        if sent is not None:
            return sent
        return (yield from signals.send(parcel_of(execution), index_of(execution), signal, now))

    async def deliver(self, execution: UUID, signal: Signal) -> signals.SignalResult:
        """Deliver a signal. Try again while the execution moves from one state to another.

        Raises Conflict when too many signals wait for the execution, and Busy when it moves all the time.
        """
        for tried in range(TRIES + PAUSES):
            if tried >= TRIES:
                await self._env.clock.sleep(PAUSE)
            consequences = Consequences()
            sent = await self._store.change(partial(self._deliver, execution, signal, consequences))
            self._store.started(consequences)
            self._store.created(consequences.parcels)
            if sent.verdict == "full":
                detail = f"{MOST_KEPT} signals already wait to be received by execution {execution}."
                raise Conflict(detail, "Send more when it has received some.")
            if sent.verdict not in ("moving", "unknown"):
                return sent
        raise Busy("The execution changed its state each time that Horae tried to deliver the signal.")


def _check(name: str, payload: Raw) -> None:
    if not name or len(name) > MAX_SIGNAL_NAME or "\0" in name:
        raise BadInput("A signal needs a name.", f"Use 1 to {MAX_SIGNAL_NAME} characters.", field="name")
    if name.startswith(CALLBACK):
        remedy = "To answer a callback, call the URL that the step gave out."
        raise BadInput(f"{name[:60]!r} cannot name a signal.", remedy, field="name")
    if len(payload) > MAX_SIGNAL:
        raise TooLarge(f"The payload has {len(payload)} bytes.", f"{MAX_SIGNAL} are allowed; send a reference.")
    if payload:
        check_item(b'{"payload":' + bytes(payload) + b"}", "payload")


class Callbacks:
    """Receives calls for waiting steps. The URL's token is the credential for one step; only its first call counts."""

    def __init__(self, store: Store, signals: SignalSender) -> None:
        self._store, self._signals = store, signals
        self._secret = b""

    async def prepare(self) -> None:
        """Read the secret that all servers share from the store; the first server stores a new one."""
        fresh = new_callback_secret()
        self._secret = await self._store.write(lambda: keep_secret(fresh))

    @property
    def secret(self) -> bytes:
        """The secret from which the tokens of callbacks are derived; only the servers of this store know it."""
        return self._secret

    async def receive(self, token: str, body: Raw) -> SignalView:
        """Deliver a call and its body to a step.

        Raises NotFound for a forged token, and Conflict when the workflow has ended.
        """
        found = read_token(self._secret, token)
        if found is None:
            raise NotFound("There is no such callback.", "Use the URL as the workflow gave it.")
        execution, step = found
        name = f"{CALLBACK}{step}"
        # Users choose the keys of signals, so the id of a callback is none that a key can have.
        signal = Signal(id=uuid5(uuid5(execution, CALLBACK), step), name=name, payload=bytes(body) or b"null")
        sent = await self._signals.deliver(execution, signal)
        if sent.verdict == "final":
            raise Conflict("The workflow has ended.", "The call was too late, or no longer needed.")
        return SignalView(execution_id=execution, name=step, delivered=sent.verdict == "delivered")
