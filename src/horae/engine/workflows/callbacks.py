"""Callbacks: a step of a workflow waits until its own URL is called. The token in it is the credential."""

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
    """Takes calls; each is for one step, and counts once."""

    def __init__(self, store: Store, signals: SignalSender) -> None:
        self._store, self._signals = store, signals
        self._secret = b""

    async def prepare(self) -> None:
        """Have the store know a secret; the first server's counts."""
        fresh = new_callback_secret()
        self._secret = await self._store.write(lambda: keep_secret(fresh))

    @property
    def secret(self) -> bytes:
        """What the store's servers know and nobody else."""
        return self._secret

    async def receive(self, token: str, body: Raw) -> SignalView:
        """Tell a step that it was called; it gets the body. What was made up is not found."""
        found = read_token(self._secret, token)
        if found is None:
            raise NotFound("There is no such callback.", "Use the URL as the workflow gave it.")
        execution, step = found
        name = f"{CALLBACK}{step}"
        signal = Signal(id=uuid5(execution, name), name=name, payload=bytes(body) or b"null")
        sent = await self._signals.deliver(execution, signal)
        if sent.verdict == "final":
            raise Conflict("The workflow has ended, and waits for nothing.", "It was too late, or not needed any more.")
        return SignalView(execution_id=execution, name=step, delivered=sent.verdict == "delivered")
