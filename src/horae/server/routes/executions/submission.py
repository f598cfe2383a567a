"""Submissions: their bodies, converted to requests for the engine, and answers, made of the engine's receipts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from horae.errors import BadInput, HoraeError
from horae.model.base.ids import index_of
from horae.model.base.trace import TraceHeaders
from horae.model.base.view import Status, View
from horae.model.executions.submission import Receipt
from horae.model.fields.derived import decoded, reader
from horae.model.fleet.submit import SUBMISSION, Submit
from horae.server.call import ApiCall
from horae.server.problems import problem_document
from horae.server.reading.bodies import RequestBody, decode
from horae.server.reply import encode

MOST_ITEMS = 10_000  # items in one bulk submission
TERMS = tuple(row for row in SUBMISSION.rows if row.attribute != "job")  # the options of an execution
Job = Annotated[str, Meta(min_length=1, max_length=128, description=SUBMISSION["job"].field.help)]

if TYPE_CHECKING:  # for type checkers: the fields used in Python

    class SubmissionOptions(RequestBody, frozen=True, kw_only=True):
        params: Raw = Raw()
        key: str | None = None
        propagate: bool = True
        wait_for_dependencies: bool = False
else:
    SubmissionOptions = decoded(
        TERMS, "SubmissionOptions", "Options of a submission, such as params; all are optional.", RequestBody
    )


class ExecutionBody(SubmissionOptions, frozen=True, kw_only=True):
    """A submission of one execution."""

    job: Job


class ManyOfOneJob(SubmissionOptions, frozen=True, kw_only=True):
    """Many executions of one job. `items` are their params; the other fields are common to all of them."""

    job: Job
    items: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: Annotated[
        bool, Meta(description="Accept all items or none; otherwise each item is accepted or refused by itself.")
    ] = False


class ManyExecutions(RequestBody, frozen=True, kw_only=True):
    """Many executions, each with its own options."""

    items: Annotated[list[ExecutionBody], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: bool = False


class SubmissionBody(SubmissionOptions, frozen=True, kw_only=True):
    """A submission in any of the three forms."""

    job: Job | None = None
    items: list[Raw] | None = None
    atomic: bool = False


class SubmissionReceipt(View, frozen=True, kw_only=True):
    """An accepted execution. `deduplicated` means that the submission's key already belonged to this execution.

    `cached` means that an earlier execution's `result` is the answer; `batched`, that the execution includes this
    submission as the item at `index`. `warning` is present if the job needs something that no worker ever had.
    """

    execution_id: UUID
    status: Status
    deduplicated: bool
    cached: bool | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class TriggerReceipt(SubmissionReceipt, frozen=True, kw_only=True):
    """A triggered job. `fires` names the jobs that the end of the execution may start; `note` explains exceptions."""

    fires: tuple[str, ...] = ()
    note: str | None = None


class BulkItem(View, frozen=True, kw_only=True):
    """The result of one item: an execution, or the problem for which it was refused."""

    execution_id: UUID | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    deduplicated: bool | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class BulkReceipt(View, frozen=True, kw_only=True):
    """The result of each item, in order; `warnings` is present if jobs need something that no worker ever had."""

    items: list[BulkItem]
    accepted: int
    refused: int
    warnings: list[str] | UnsetType = UNSET


_ITEM = msgspec.json.Decoder(ExecutionBody)
_NOTHING = SubmissionOptions()


# Converts one execution to a request for the engine.
submit_of: Callable[[str, SubmissionOptions, TraceHeaders], Submit] = reader(
    TERMS, Submit, "job, body, trace", job="job", trace="trace.parent", trace_state="trace.state"
)


def requests_of(body: SubmissionBody, trace: TraceHeaders) -> list[Submit | HoraeError]:
    """Return the submissions of a body: one, or one for each item, with its own options or the error of the item."""
    if body.items is None:
        if body.job is None:
            raise BadInput("Neither job nor items is given.", 'Name a job: {"job": "report"}.', field="job")
        return [submit_of(body.job, body, trace)]
    _check_count(body.items)
    _refuse_common(body)
    return [_own(item, i, trace) for i, item in enumerate(body.items)]


def shared_options(job: str, items: Sequence[Raw], body: SubmissionBody, trace: TraceHeaders) -> Submit:
    """Return the options that many executions of one job have in common."""
    _check_count(items)
    if body.params or body.key is not None:
        field = "params" if body.params else "key"
        raise BadInput(f"{field} cannot be common to all items.", "With `job`, each item is only its params; to give"
                       ' each item a key, send {"items": [{"job": "report", "params": {}, "key": "a"}]}.',
                       field=field)  # fmt: skip
    return submit_of(job, body, trace)


def _check_count(items: Sequence[Raw]) -> None:
    if not 0 < len(items) <= MOST_ITEMS:
        raise BadInput(f"items has {len(items)} entries.", f"Send 1 to {MOST_ITEMS} at a time.", field="items")


def _refuse_common(body: SubmissionBody) -> None:
    for field in msgspec.structs.fields(SubmissionOptions):
        if getattr(body, field.name) != getattr(_NOTHING, field.name):
            remedy = "Give it in each item, or name one job for all of them."
            name = field.encode_name
            raise BadInput(f"{name} is given for items without a job.", remedy, field=name)


def _own(item: Raw, index: int, trace: TraceHeaders) -> Submit | HoraeError:
    try:
        wish = decode(bytes(item), _ITEM)
        return submit_of(wish.job, wish, trace)
    except BadInput as error:
        field = f"items[{index}].{error.fields.get('field', '')}".removesuffix(".body")
        return BadInput(f"Item {index}: {error.detail}", error.remedy, field=field, index=index)


def readable_requests(requests: Sequence[Submit | HoraeError], *, partial: bool) -> list[Submit]:
    """Return the readable requests; without `partial`, raise the first error."""
    for request in requests:
        if isinstance(request, HoraeError) and not partial:
            raise request
    return [request for request in requests if isinstance(request, Submit)]


def merge_results(
    requests: Sequence[Submit | HoraeError], receipts: Sequence[Receipt | HoraeError]
) -> list[Receipt | HoraeError]:
    """Return the result of each item: receipts of readable items, errors of the others."""
    rest = iter(receipts)
    return [request if isinstance(request, HoraeError) else next(rest) for request in requests]


def accepted(receipt: Receipt) -> SubmissionReceipt:
    """Convert a receipt to the API's form."""
    return SubmissionReceipt(
        execution_id=receipt.execution_id, status=receipt.state, deduplicated=receipt.deduplicated, **_shared(receipt)
    )


def _shared(receipt: Receipt) -> dict[str, Any]:
    """Return the members of a receipt about a batch or a cached result, if any."""
    if receipt.batched:
        return {"batched": True, "index": receipt.index}
    return {"cached": True} if receipt.cached else {}


def is_old(receipt: SubmissionReceipt) -> bool:
    """Return whether a submission was answered with an execution that existed before."""
    return receipt.deduplicated or receipt.cached is True


async def with_result(call: ApiCall, receipt: SubmissionReceipt) -> SubmissionReceipt:
    """Add the cached result to a receipt, if it has one."""
    if receipt.cached is not True:
        return receipt
    known = await call.node.work.executions.get(call.namespace, receipt.execution_id)
    return msgspec.structs.replace(receipt, result=known.result)


async def with_warning(call: ApiCall, job: str, receipt: SubmissionReceipt) -> SubmissionReceipt:
    """Add the warning about the submitted job to a receipt, if there is one."""
    warning = await call.node.warning(call.namespace, job)
    return receipt if warning is None else msgspec.structs.replace(receipt, warning=warning)


async def warnings_of(call: ApiCall, jobs: Iterable[str]) -> list[str]:
    """Return the warnings about submitted jobs, each with the job's name."""
    warnings = [(job, await call.node.warning(call.namespace, job)) for job in dict.fromkeys(jobs)]
    return [f'Job "{job}": {warning}' for job, warning in warnings if warning is not None]


def single_receipt(receipts: Sequence[Receipt | HoraeError]) -> SubmissionReceipt:
    """Return the answer to a single submission, or raise its error."""
    receipt = receipts[0]
    if isinstance(receipt, HoraeError):
        raise receipt
    return accepted(receipt)


def bulk_answer(receipts: Sequence[Receipt | HoraeError], warnings: list[str]) -> BulkReceipt:
    """Return the answer for a bulk submission."""
    items = [_item(receipt) for receipt in receipts]
    refused = sum(isinstance(receipt, HoraeError) for receipt in receipts)
    return BulkReceipt(items=items, accepted=len(items) - refused, refused=refused, warnings=warnings or UNSET)


def _item(receipt: Receipt | HoraeError) -> BulkItem:
    if isinstance(receipt, HoraeError):
        return BulkItem(error=problem_document(receipt))
    return BulkItem(
        execution_id=receipt.execution_id, status=receipt.state, deduplicated=receipt.deduplicated, **_shared(receipt)
    )


def encoded_bulk_answer(receipts: Sequence[Receipt], refused: Mapping[int, HoraeError], warnings: list[str]) -> bytes:
    """Return the answer for a bulk submission, encoded like `BulkReceipt` at a tenth of the cost."""
    items = [text for receipt in receipts for text in _texts(receipt)]
    accepted = len(items)
    for i in sorted(refused):
        items.insert(i, encode(BulkItem(error=problem_document(refused[i]))).decode())
    odd = f',"warnings":{encode(warnings).decode()}' if warnings else ""
    return f'{{"items":[{",".join(items)}],"accepted":{accepted},"refused":{len(refused)}{odd}}}'.encode()


def _texts(receipt: Receipt) -> list[str]:
    """Encode a receipt; executions of one parcel differ only in the last four digits of their ids."""
    if receipt.batched or receipt.cached:
        return [encode(_item(receipt)).decode()]
    first = index_of(receipt.execution_id)
    head = f'{{"executionId":"{str(receipt.execution_id)[:-4]}'
    tail = f'","status":"{receipt.state}","deduplicated":{"true" if receipt.deduplicated else "false"}}}'
    return [f"{head}{index:04x}{tail}" for index in range(first, first + receipt.count)]
