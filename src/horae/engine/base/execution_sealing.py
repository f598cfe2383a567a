"""Params and results of sensitive jobs: sealed before they are stored, opened for workers and for who may see them.

Params are sealed for their job, results for their parcel: what was moved to another place does not open.
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
from horae.model.tenancy.sealed import is_sealed, read, spell

HIDDEN = "(sealed)"
UNKEPT = Raw(b'{"$notKept":"The server had no secret key to seal it with."}')

log = structlog.get_logger("horae.engine")


class ExecutionSealer:
    """Seals and opens."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal_params(self, job: UUID, item: bytes) -> bytes:
        return spell(self._sealer.seal(item, b"params" + job.bytes))

    def open_params(self, job: UUID, item: bytes | Raw) -> bytes:
        """The params of a job; what is not sealed is as it is. Raises BadInput for what only looks sealed."""
        if not is_sealed(item):
            return bytes(item)
        return self._open(item, b"params" + job.bytes)

    def granted(self, job: UUID, items: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Params for a worker, or why they cannot be given."""
        try:
            return [self.open_params(job, item) for item in items], ""
        except HoraeError as error:
            return [b"{}"] * len(items), str(error)

    def seal_results(self, up: Exchange) -> Exchange:
        """An exchange whose results of sensitive jobs are sealed."""
        if not any(outcome.sensitive and outcome.results for outcome in up.outcomes):
            return up
        return structs.replace(up, outcomes=[self._sealed(outcome) for outcome in up.outcomes])

    def _sealed(self, outcome: Outcome) -> Outcome:
        if not outcome.sensitive or not outcome.results:
            return outcome
        context = b"result" + outcome.parcel.bytes
        try:
            results = [
                result if bytes(result) == b"null" else Raw(spell(self._sealer.seal(bytes(result), context)))
                for result in outcome.results
            ]
        except MasterKeyMissing as error:  # it has run: to refuse the report would run it again, and hold up the others
            first, count = execution_id(outcome.parcel, outcome.lo), outcome.hi - outcome.lo
            log.error(
                "a result could not be sealed, and is not kept", execution=str(first), executions=count,
                attempt=outcome.attempt, error=str(error),
            )  # fmt: skip
            results = [UNKEPT] * len(outcome.results)
        return structs.replace(outcome, results=results)

    def shown(self, who: Principal, view: ExecutionView) -> ExecutionView:
        """An execution as somebody may see it."""
        if not who.may("sensitive"):
            return hidden(view)
        params, result = view.params, view.result
        if isinstance(params, Raw) and is_sealed(params):
            view = structs.replace(view, params=self._seen(params, b"params" + view.job_id.bytes), sensitive=True)
        if isinstance(result, Raw) and is_sealed(result):
            context = b"result" + parcel_of(view.execution_id).bytes
            view = structs.replace(view, result=self._seen(result, context), sensitive=True)
        return view

    def _seen(self, value: Raw, context: bytes) -> Raw | str:
        """What is sealed, opened; a result that only looks so, which any job can return, hides nothing else."""
        try:
            return Raw(self._open(value, context))
        except HoraeError as error:
            return f"{HIDDEN}: {error.detail}"

    def _open(self, value: bytes | Raw, context: bytes) -> bytes:
        try:
            sealed = read(value)
        except ValueError:
            remedy = "Send the params themselves: `$sealed` is how the store spells what it keeps."
            raise BadInput("This was not sealed here.", remedy, field="params") from None
        return self._sealer.open(sealed, context)


def hidden(view: ExecutionView) -> ExecutionView:
    """An execution without what is sealed: for lists, and for answers that are kept."""
    if isinstance(view.params, Raw) and is_sealed(view.params):
        view = structs.replace(view, params=HIDDEN, sensitive=True)
    if isinstance(view.result, Raw) and is_sealed(view.result):
        view = structs.replace(view, result=HIDDEN, sensitive=True)
    return view


def hidden_page(page: Page[ExecutionView]) -> Page[ExecutionView]:
    """The same of a list of them."""
    return structs.replace(page, items=[hidden(view) for view in page.items])
