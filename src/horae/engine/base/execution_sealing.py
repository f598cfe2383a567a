"""Params and results of sensitive jobs are sealed before they are stored.

They are opened for workers and for users with the permission `sensitive`. Params are sealed for their job, results for
their parcel, so that a sealed value that was copied to another job or parcel does not open.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog
from msgspec import Raw, structs

from horae.engine.base.sealing import Sealer
from horae.errors import BadInput, HoraeError, MasterKeyMissing
from horae.model.base.ids import execution_id, parcel_of
from horae.model.base.view import Page
from horae.model.executions.execution_view import ExecutionView
from horae.model.fleet.protocol import Exchange, Outcome
from horae.model.tenancy.principal import Principal
from horae.model.tenancy.sealed import decode_sealed, encode_sealed, is_sealed

HIDDEN = "(sealed)"
NOT_STORED = Raw(b'{"$notKept":"The server had no master key to seal it with."}')

log = structlog.get_logger("horae.engine")


class ExecutionSealer:
    """Seals and opens the params and results of executions."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal_params(self, job: UUID, item: bytes) -> bytes:
        return encode_sealed(self._sealer.seal(item, b"params" + job.bytes))

    def open_params(self, job: UUID, item: bytes | Raw) -> bytes:
        """Return the params of an item, opened if they are sealed. Raises BadInput for a forged sealed value."""
        if not is_sealed(item):
            return bytes(item)
        return self._open(item, b"params" + job.bytes)

    def open_for_worker(self, job: UUID, items: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Return params for a worker, and the reason if they cannot be opened: then they are empty objects."""
        try:
            return [self.open_params(job, item) for item in items], ""
        except HoraeError as error:
            return [b"{}"] * len(items), str(error)

    def seal_results(self, up: Exchange) -> Exchange:
        """Return an exchange with the results of sensitive jobs sealed."""
        if not any(outcome.sensitive and outcome.results for outcome in up.outcomes):
            return up
        return structs.replace(up, outcomes=[self._sealed(outcome) for outcome in up.outcomes])

    def _sealed(self, outcome: Outcome) -> Outcome:
        if not outcome.sensitive or not outcome.results:
            return outcome
        context = b"result" + outcome.parcel.bytes
        try:
            results = [
                result if bytes(result) == b"null" else Raw(encode_sealed(self._sealer.seal(bytes(result), context)))
                for result in outcome.results
            ]
        except MasterKeyMissing as error:
            # The execution has run. A refused report would run it again and delay the other outcomes of the exchange.
            first, count = execution_id(outcome.parcel, outcome.lo), outcome.hi - outcome.lo
            log.error(
                "a result could not be sealed and is not stored", execution=str(first), executions=count,
                attempt=outcome.attempt, error=str(error),
            )  # fmt: skip
            results = [NOT_STORED] * len(outcome.results)
        return structs.replace(outcome, results=results)

    def show(self, principal: Principal, view: ExecutionView) -> ExecutionView:
        """Return an execution as a principal may see it."""
        if not principal.may("sensitive"):
            return without_sealed(view)
        params, result = view.params, view.result
        if isinstance(params, Raw) and is_sealed(params):
            view = structs.replace(view, params=self._seen(params, b"params" + view.job_id.bytes), sensitive=True)
        if isinstance(result, Raw) and is_sealed(result):
            context = b"result" + parcel_of(view.execution_id).bytes
            view = structs.replace(view, result=self._seen(result, context), sensitive=True)
        return view

    def _seen(self, value: Raw, context: bytes) -> Raw | str:
        """Open a sealed value, or return the reason why it does not open.

        This never raises, because any job can return a result that only looks sealed.
        """
        try:
            return Raw(self._open(value, context))
        except HoraeError as error:
            return f"{HIDDEN}: {error.detail}"

    def _open(self, value: bytes | Raw, context: bytes) -> bytes:
        try:
            sealed = decode_sealed(value)
        except ValueError:
            remedy = "Send the params themselves: `$sealed` is the form in which the store keeps sealed values."
            raise BadInput("This value was not sealed by this installation.", remedy, field="params") from None
        return self._sealer.open(sealed, context)


def without_sealed(view: ExecutionView) -> ExecutionView:
    """Return an execution without its sealed values: for lists and for stored answers."""
    if isinstance(view.params, Raw) and is_sealed(view.params):
        view = structs.replace(view, params=HIDDEN, sensitive=True)
    if isinstance(view.result, Raw) and is_sealed(view.result):
        view = structs.replace(view, result=HIDDEN, sensitive=True)
    return view


def page_without_sealed(page: Page[ExecutionView]) -> Page[ExecutionView]:
    """Return a page of executions without their sealed values."""
    return structs.replace(page, items=[without_sealed(view) for view in page.items])
