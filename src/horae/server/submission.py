"""Submissions: what the REST routes take, as the engine's requests; its receipts, as answers."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from horae.errors import BadInput, HoraeError
from horae.model.duration import parse_duration
from horae.model.instant import parse_instant
from horae.model.protocol import Submit
from horae.server.bodies import NewExecution, Submission, Trigger
from horae.server.problems import problem_document
from horae.server.reading import decode
from horae.server.views import Accepted, BulkAccepted, BulkItem
from horae.store.moves.submit import Receipt

MOST_ITEMS = 10_000

_ITEM = msgspec.json.Decoder(NewExecution)


def submit_of(job: str, wish: Trigger, trace: str | None) -> Submit:
    """One execution as the engine takes it."""
    return Submit(
        job=job,
        params=wish.params,
        delay=None if wish.delay is None else parse_duration(wish.delay, field="delay"),
        at=None if wish.at is None else parse_instant(wish.at, field="at"),
        key=wish.key,
        key_for=None if wish.key_for is None else parse_duration(wish.key_for, field="keyFor"),
        priority=wish.priority,
        tags=wish.tags,
        trace=trace,
    )


def requests_of(body: Submission, trace: str | None) -> list[Submit]:
    """What a body asks for: one execution, many of one job, or many on their own terms."""
    if body.items is None:
        if body.job is None:
            raise BadInput("Neither job nor items is given.", 'Say which job: {"job": "report"}.', field="job")
        return [submit_of(body.job, body, trace)]
    if not 0 < len(body.items) <= MOST_ITEMS:
        raise BadInput(f"items has {len(body.items)} entries.", f"Send 1 to {MOST_ITEMS} at a time.", field="items")
    if body.job is not None:
        return _of_one_job(body.job, body, body.items, trace)
    _refuse_common(body)
    return [_own(item, i, trace) for i, item in enumerate(body.items)]


def _of_one_job(job: str, body: Submission, items: Sequence[Raw], trace: str | None) -> list[Submit]:
    if body.params or body.key is not None:
        field = "params" if body.params else "key"
        raise BadInput(f"{field} cannot be common to all items.", "Items are params; to give each a key, list them as "
                       '{"items": [{"job": "report", "params": {}, "key": "a"}]}.', field=field)  # fmt: skip
    common = submit_of(job, body, trace)
    return [
        Submit(job=job, params=item, delay=common.delay, at=common.at, priority=common.priority, tags=common.tags,
               trace=trace)
        for item in items
    ]  # fmt: skip


def _refuse_common(body: Submission) -> None:
    for field in ("params", "delay", "at", "key", "key_for", "priority", "tags"):
        if getattr(body, field):
            remedy = "Say it in each item, or name one job for all of them."
            raise BadInput(f"{field} stands beside items without a job.", remedy, field=field)


def _own(item: Raw, index: int, trace: str | None) -> Submit:
    try:
        wish = decode(bytes(item), _ITEM)
        return submit_of(wish.job, wish, trace)
    except BadInput as error:
        field = f"items[{index}].{error.fields.get('field', '')}".rstrip(".")
        raise BadInput(f"Item {index}: {error.detail}", error.remedy, field=field, index=index) from None


def accepted(receipt: Receipt) -> Accepted:
    """A receipt as the API shows it."""
    return Accepted(execution_id=receipt.execution_id, status=receipt.state, deduplicated=receipt.deduplicated)


def one(receipts: Sequence[Receipt | HoraeError]) -> Accepted:
    """The only receipt."""
    receipt = receipts[0]
    if isinstance(receipt, HoraeError):
        raise receipt
    return accepted(receipt)


def bulk(receipts: Sequence[Receipt | HoraeError]) -> BulkAccepted:
    """What became of each."""
    items = [_item(receipt) for receipt in receipts]
    refused = sum(isinstance(receipt, HoraeError) for receipt in receipts)
    return BulkAccepted(items=items, accepted=len(items) - refused, refused=refused)


def _item(receipt: Receipt | HoraeError) -> BulkItem:
    if isinstance(receipt, HoraeError):
        return BulkItem(error=problem_document(receipt))
    return BulkItem(execution_id=receipt.execution_id, status=receipt.state, deduplicated=receipt.deduplicated)
