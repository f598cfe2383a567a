"""Keys of submissions: those of the limits and the sequence of their job."""

from collections.abc import Sequence

from msgspec import structs

from horae.errors import BadInput
from horae.model.admission.limit_keys import common_keys, envelope_keys
from horae.model.definitions.job import Spec
from horae.model.executions.submission import NewExecution
from horae.model.fleet.protocol import Submit
from horae.store.definitions.jobs import StoredJob

MIXED = "mixed"  # the keys of a lot whose items do not share them


def keyed(one: NewExecution, spec: Spec) -> NewExecution:
    """An execution under the keys that its job's templates come to. Raises BadInput when one cannot be filled in."""
    envelope = one.envelope
    keys = envelope_keys(envelope.keys, envelope.job, spec, one.item, one.extra.tags)
    return structs.replace(one, envelope=structs.replace(envelope, keys=keys))


def keys_of_lot(stored: StoredJob, items: Sequence[bytes], terms: Submit) -> str:
    """The keys that all items of a lot have, or MIXED; also when one is wrong, which is told with its index."""
    spec = stored.job.spec
    try:
        return common_keys(spec.keys, stored.job.id, spec, items, terms.tags) or MIXED
    except (BadInput, ValueError):
        return MIXED
