"""Callbacks: a step of a workflow waits until its own URL is called. The token in the URL is the credential."""

from uuid import uuid5

from msgspec import Raw

from horae.engine.base.tokens import new_callback_secret
from horae.engine.executions.signals import SignalSender
from horae.errors import Conflict, NotFound
from horae.model.executions.signal_waits import Signal, SignalView
from horae.model.workflows.decisions.waits import CALLBACK, read_token
from horae.store.contract import Store
from horae.store.workflows.workflow_run import keep_secret


class Callbacks:
    """Receives calls. Each token is for one step and counts once."""

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
        """Deliver a call and its body to a step. Raises NotFound for a forged token."""
        found = read_token(self._secret, token)
        if found is None:
            raise NotFound("There is no such callback.", "Use the URL as the workflow gave it.")
        execution, step = found
        name = f"{CALLBACK}{step}"
        signal = Signal(id=uuid5(execution, name), name=name, payload=bytes(body) or b"null")
        sent = await self._signals.deliver(execution, signal)
        if sent.verdict == "final":
            raise Conflict("The workflow has ended.", "The call was too late, or no longer needed.")
        return SignalView(execution_id=execution, name=step, delivered=sent.verdict == "delivered")
