"""Routes of dead letters (executions that failed for good) and of their replays."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from msgspec import Meta, structs

from horae.engine.base.execution_sealing import without_sealed
from horae.engine.definitions.permits import scope_in_words
from horae.errors import BadInput, Conflict, Forbidden, Gone, NotFound, OverQuota
from horae.features.dead_letters.engine.filters import LetterFilterFields
from horae.features.dead_letters.model import (
    LETTER_FILTER,
    BulkView,
    DeadLetterGroups,
    DeadLetterView,
    ReplayState,
    ReplayView,
)
from horae.features.dead_letters.part import DeadLettersPart
from horae.model.base.view import Page
from horae.model.fields.derived import decoded
from horae.server.access import OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import Cursor, Limit, Paged, Query
from horae.server.reply import Response, ok
from horae.server.route import API, REQUEST, get, post
from horae.server.scopes import Arguments, by_execution, by_job_filter, check_executions, check_jobs, closed

if TYPE_CHECKING:  # type checkers need a class; at runtime its fields are generated from the table

    class DeadLetterSelection(RequestBody, frozen=True, kw_only=True):
        job: str | None = None
else:
    DeadLetterSelection = decoded(
        LETTER_FILTER.rows,
        "DeadLetterSelection",
        "A filter of dead letters; an empty one matches all open dead letters.",
        RequestBody,
    )

LetterState = Literal["open", "retried", "discarded", "all"]


class DeadLetterFilter(DeadLetterSelection, frozen=True, kw_only=True):
    """A filter of dead letters, and the most dead letters to process."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    cursor: Annotated[str, Meta(max_length=512, description="`nextCursor` of the previous answer.")] | None = None


class DeadLetterChoice(RequestBody, frozen=True, kw_only=True):
    """Dead letters with these ids, or all that match a filter."""

    ids: Annotated[list[str], Meta(max_length=1000)] | None = None
    filter: DeadLetterFilter | None = None


class DeadLetterRetry(DeadLetterChoice, frozen=True, kw_only=True):
    """Dead letters to run again, and changes of their params."""

    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch of the params: null removes a member.")
    ] = None


class ReplayBody(RequestBody, frozen=True, kw_only=True):
    """Dead letters to run again at a limited rate."""

    filter: DeadLetterSelection
    rate: (
        Annotated[str, Meta(description='The highest rate of retries, such as "10/1s"; unlimited by default.')] | None
    ) = None
    params: Annotated[
        dict[str, Any] | None, Meta(description="A merge patch of the params: null removes a member.")
    ] = None


if TYPE_CHECKING:
    _Which = Query
else:
    _Which = decoded(LETTER_FILTER.rows, "_Which", "A filter of dead letters.", Query)


class DeadLetterQuery(_Which, frozen=True, kw_only=True):
    """A filter of dead letters, also by their state."""

    state: Annotated[LetterState, Meta(description="The state of the dead letters.")] = "open"


class DeadLetterList(DeadLetterQuery, frozen=True, kw_only=True):
    """The query of a page of dead letters."""

    limit: Limit = 50
    cursor: Cursor | None = None


class ReplayList(Paged, frozen=True, kw_only=True):
    """The query of a page of replays."""

    state: Annotated[ReplayState, Meta(description="Only replays in this state.")] | None = None


async def by_choice(call: ApiCall, arguments: Arguments) -> None:
    """Check that the caller's scope has the jobs of all `ids`, or the `job` of the filter. Raises Forbidden."""
    body: DeadLetterChoice = arguments["body"]
    if body.ids is not None:
        await check_executions(call, body.ids)
    elif body.filter is None or body.filter.job is None:
        example = 'Send {"ids": [...]} or {"filter": {"job": "..."}}.'
        remedy = f"{example} This credential is for {scope_in_words(call.who)}."
        raise Forbidden("This credential is not valid for all dead letters.", remedy)
    else:
        await check_jobs(call, [body.filter.job])


@get(f"{API}/dlq", "dlq.list", Page[DeadLetterView], access=VIEW, scope=by_job_filter, refuses=(NotFound,))
async def list_dead_letters(call: ApiCall, query: DeadLetterList) -> Response:
    """List dead letters, newest first."""
    page = await call.node.part(DeadLettersPart).dead_letters.list(
        call.namespace, state=query.state, limit=query.limit, cursor=query.cursor, **filter_fields(query)
    )
    items = [structs.replace(letter, execution=without_sealed(letter.execution)) for letter in page.items]
    return ok(structs.replace(page, items=items))


@get(f"{API}/dlq/groups", "dlq.groups", DeadLetterGroups, access=VIEW, scope=by_job_filter, refuses=(NotFound,))
async def list_groups(call: ApiCall, query: DeadLetterQuery) -> Response:
    """Count dead letters by job and error type, the largest group first; each has its newest one as an example."""
    return ok(
        await call.node.part(DeadLettersPart).dead_letters.groups(
            call.namespace, state=query.state, **filter_fields(query)
        )
    )


@get(f"{API}/dlq/{{id}}", "dlq.get", DeadLetterView, access=VIEW, scope=by_execution, refuses=(NotFound, Gone))
async def get_dead_letter(call: ApiCall) -> Response:
    """Read a dead letter."""
    letter = await call.node.part(DeadLettersPart).dead_letters.get(call.namespace, call.id())
    return ok(structs.replace(letter, execution=call.node.base.execution_sealer.show(call.who, letter.execution)))


@post(
    f"{API}/dlq/retry", "dlq.retry", BulkView,
    access=OPERATE, scope=by_choice, audit=REQUEST, refuses=(NotFound, OverQuota),
)  # fmt: skip
async def retry(call: ApiCall, body: DeadLetterRetry) -> Response:
    """Run dead letters, chosen by id or by filter, again.

    Each becomes a new execution with `retryOf`; `params` are merged into its params.
    """
    letters = call.node.part(DeadLettersPart).dead_letters
    if body.ids is not None:
        done = await letters.retry_each(call.namespace, _ids(body), caller=call.caller, params=body.params)
        made = [letter.retried_as for letter in done if letter.retried_as]
        return ok(BulkView(matched=len(done), done=len(made), execution_ids=made))
    chosen = _filter(body)
    return ok(
        await letters.retry_many(
            call.namespace, limit=chosen.limit, cursor=chosen.cursor, caller=call.caller, params=body.params,
            **filter_fields(chosen),
        )
    )  # fmt: skip


@post(
    f"{API}/dlq/discard", "dlq.discard", BulkView, access=OPERATE, scope=by_choice, audit=REQUEST, refuses=(NotFound,)
)
async def discard(call: ApiCall, body: DeadLetterChoice) -> Response:
    """Remove dead letters, chosen by id or by filter, from the list of open ones; the executions stay in history."""
    letters = call.node.part(DeadLettersPart).dead_letters
    if body.ids is not None:
        done = await letters.discard_each(call.namespace, _ids(body))
        gone = [letter.execution.execution_id for letter in done]
        return ok(BulkView(matched=len(done), done=len(done), execution_ids=gone))
    chosen = _filter(body)
    return ok(
        await letters.discard_many(call.namespace, limit=chosen.limit, cursor=chosen.cursor, **filter_fields(chosen))
    )


@post(
    f"{API}/dlq/replays", "dlq.replay", ReplayView,
    access=OPERATE, scope=closed, audit=REQUEST, status=201, refuses=(NotFound,),
)  # fmt: skip
async def create_replay(call: ApiCall, body: ReplayBody) -> Response:
    """Run again all dead letters that match now, at a limited rate; the replay continues even if a server is killed."""
    made = await call.node.part(DeadLettersPart).replays.create(
        call.namespace, rate=body.rate, params=body.params, caller=call.caller, **filter_fields(body.filter)
    )
    return ok(made, 201, location=f"{API}/dlq/replays/{made.replay_id}")


@get(f"{API}/dlq/replays", "dlq.replays", Page[ReplayView], access=VIEW, scope=closed)
async def list_replays(call: ApiCall, query: ReplayList) -> Response:
    """List replays, newest first."""
    return ok(
        await call.node.part(DeadLettersPart).replays.list(
            call.namespace, state=query.state, limit=query.limit, cursor=query.cursor
        )
    )


@get(f"{API}/dlq/replays/{{id}}", "dlq.get-replay", ReplayView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_replay(call: ApiCall) -> Response:
    """Read a replay with its progress."""
    return ok(await call.node.part(DeadLettersPart).replays.get(call.namespace, call.id()))


@post(
    f"{API}/dlq/replays/{{id}}/pause", "dlq.pause-replay", ReplayView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def pause_replay(call: ApiCall) -> Response:
    """Pause a replay until it is resumed."""
    return ok(await call.node.part(DeadLettersPart).replays.pause(call.namespace, call.id()))


@post(
    f"{API}/dlq/replays/{{id}}/resume", "dlq.resume-replay", ReplayView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def resume_replay(call: ApiCall) -> Response:
    """Resume a paused replay."""
    return ok(await call.node.part(DeadLettersPart).replays.resume(call.namespace, call.id()))


@post(
    f"{API}/dlq/replays/{{id}}/cancel", "dlq.cancel-replay", ReplayView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def cancel_replay(call: ApiCall) -> Response:
    """Cancel a replay for good; executions that it retried are not affected."""
    return ok(await call.node.part(DeadLettersPart).replays.cancel(call.namespace, call.id()))


def filter_fields(request: DeadLetterList | DeadLetterQuery | DeadLetterSelection) -> LetterFilterFields:
    """Return the filter of a request in the form that the engine takes."""
    return cast(LetterFilterFields, {row.attribute: getattr(request, row.attribute) for row in LETTER_FILTER.rows})


def _ids(body: DeadLetterChoice) -> list[str]:
    if body.filter is not None:
        raise BadInput("The request has both ids and a filter.", "Send only one of them.", field="filter")
    return list(dict.fromkeys(body.ids or ()))


def _filter(body: DeadLetterChoice) -> DeadLetterFilter:
    if body.filter is None:
        remedy = 'Send {"ids": [...]}, or {"filter": {}} for all dead letters.'
        raise BadInput("The request has neither ids nor a filter.", remedy, field="ids")
    return body.filter
