"""Meetings: what a submission shares with others of its job, by the job's rules."""

from msgspec import structs

from horae.model.definitions.job import Spec
from horae.model.executions.deduplication import batch_of
from horae.model.executions.deduplication_keys import meetings_of, refuse_timed, unique_of
from horae.model.executions.submission import NewExecution


def whole_params(item: bytes, spec: Spec, *, retries: bool) -> bytes:
    """The params that an execution will see, as far as they are known: a batch gets its items in a list.

    What is tried again has been through that.
    """
    return item if spec.batch is None or retries else batch_of(item)


def meeting(one: NewExecution, spec: Spec) -> NewExecution:
    """A submission with the keys that it has under its job's rules. Raises BadInput when one cannot be filled in.

    What is tried again after a failure is not collected, put off or answered from memory: somebody wants it to run.
    Only one that is live stands against it, not the one that failed.
    """
    if one.extra.retry_of is not None:
        live = None if spec.unique is None else structs.replace(spec.unique, span=None, keep="first")
        return structs.replace(one, meets=unique_of(spec, one.item, live))
    refuse_timed(spec, delayed=one.envelope.due_at > 0, waits=one.patience is not None)
    return structs.replace(one, meets=meetings_of(spec, one.envelope, one.item, one.extra.tags, one.share))
