"""`sensitive`: params and results are sealed in the store, and shown to few users."""

from collections.abc import Iterable

from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.workflows.decisions.values import Workflow


def check_sensitive(spec: Spec, whens: Iterable[NamedTrigger]) -> None:
    """Refuse features for which the store would have to read sealed values, or would store them unsealed."""
    if not spec.sensitive:
        return
    refusals = (
        (isinstance(spec.task, Workflow), "a workflow: its steps read its params", "Mark the jobs that it submits."),
        (spec.durable, "durable: what its steps return is kept as it is", "Leave one of the two out."),
        (spec.batch is not None, "collected to batches", 'Leave "batch" out.'),
        (spec.debounce is not None, "debounced: the store would have to merge its params", 'Leave "debounce" out.'),
        (spec.cache is not None, "answered from a cache", 'Leave "cache" out.'),
        (
            any(isinstance(when.trigger, EventTrigger) for when in whens),
            "started by events, whose payloads are kept as they came",
            "Submit it instead: POST /api/v1/executions.",
        ),
    )
    for is_so, what, remedy in refusals:
        if is_so:
            raise BadInput(f"A sensitive job cannot be {what}.", remedy, field="sensitive")
