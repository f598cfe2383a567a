"""Params and results of sensitive jobs: sealed before they are stored, opened for workers and for who may see them.

Params are sealed for their job, results for their parcel: what was moved to another place does not open.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Raw, structs

from horae.engine.sealing import Sealer
from horae.errors import BadInput, HoraeError
from horae.model.execution_view import ExecutionView
from horae.model.ids import parcel_of
from horae.model.principal import Principal
from horae.model.protocol import Exchange, Outcome
from horae.model.sealed import is_sealed, read, spell

HIDDEN = "(sealed)"


class Seals:
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
        results = [
            result if bytes(result) == b"null" else Raw(spell(self._sealer.seal(bytes(result), context)))
            for result in outcome.results
        ]
        return structs.replace(outcome, results=results)

    def shown(self, who: Principal, view: ExecutionView) -> ExecutionView:
        """An execution as somebody may see it."""
        params, result = view.params, view.result
        if isinstance(params, Raw) and is_sealed(params):
            opened = Raw(self.open_params(view.job_id, params)) if who.may("sensitive") else HIDDEN
            view = structs.replace(view, params=opened, sensitive=True)
        if isinstance(result, Raw) and is_sealed(result):
            context = b"result" + parcel_of(view.execution_id).bytes
            opened = Raw(self._open(result, context)) if who.may("sensitive") else HIDDEN
            view = structs.replace(view, result=opened, sensitive=True)
        return view

    def _open(self, value: bytes | Raw, context: bytes) -> bytes:
        try:
            sealed = read(value)
        except ValueError:
            remedy = "Send the params themselves: `$sealed` is how the store spells what it keeps."
            raise BadInput("This was not sealed here.", remedy, field="params") from None
        return self._sealer.open(sealed, context)
