"""Dead letters: executions that failed after their last try."""

from horae.errors import BadInput, Gone, NotFound
from horae.model.view import BulkView, DeadLetterGroups, DeadLetterView, Page
from horae.server.bodies import DeadLetterChoice, DeadLetterFilter
from horae.server.call import Call
from horae.server.queries import DeadLetterGroupsOf, DeadLetterList
from horae.server.reply import Reply, ok
from horae.server.route import API, get, post


@get(f"{API}/dlq", "dlq.list", Page[DeadLetterView], refuses=(NotFound,))
async def list_dead_letters(call: Call, query: DeadLetterList) -> Reply:
    """List dead letters, newest first."""
    page = await call.node.dead_letters.list(
        call.namespace, job=query.job, error_type=query.error_type, since=query.since, until=query.until,
        state=query.state, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip
    return ok(page)


@get(f"{API}/dlq/groups", "dlq.groups", DeadLetterGroups, refuses=(NotFound,))
async def list_groups(call: Call, query: DeadLetterGroupsOf) -> Reply:
    """Count dead letters by job and error, the largest group first; the newest of each speaks for it."""
    groups = await call.node.dead_letters.groups(
        call.namespace, job=query.job, since=query.since, until=query.until, state=query.state
    )
    return ok(groups)


@get(f"{API}/dlq/{{id}}", "dlq.get", DeadLetterView, refuses=(NotFound, Gone))
async def get_dead_letter(call: Call) -> Reply:
    """Read a dead letter."""
    return ok(await call.node.dead_letters.get(call.namespace, call.id()))


@post(f"{API}/dlq/retry", "dlq.retry", BulkView, refuses=(NotFound,))
async def retry(call: Call, body: DeadLetterChoice) -> Reply:
    """Run dead letters again, by id or by filter: each as a new execution with `retryOf`."""
    letters = call.node.dead_letters
    if body.ids is not None:
        done = await letters.retry_each(call.namespace, _ids(body), caller=call.caller)
        made = [letter.retried_as for letter in done if letter.retried_as]
        return ok(BulkView(matched=len(done), done=len(made), execution_ids=made))
    chosen = _filter(body)
    return ok(
        await letters.retry_many(
            call.namespace, job=chosen.job, error_type=chosen.error_type, since=chosen.since, until=chosen.until,
            limit=chosen.limit, cursor=chosen.cursor, caller=call.caller,
        )
    )  # fmt: skip


@post(f"{API}/dlq/discard", "dlq.discard", BulkView, refuses=(NotFound,))
async def discard(call: Call, body: DeadLetterChoice) -> Reply:
    """Take dead letters off the list, by id or by filter; their history stays."""
    letters = call.node.dead_letters
    if body.ids is not None:
        done = await letters.discard_each(call.namespace, _ids(body))
        return ok(BulkView(matched=len(done), done=len(done)))
    chosen = _filter(body)
    return ok(
        await letters.discard_many(
            call.namespace, job=chosen.job, error_type=chosen.error_type, since=chosen.since, until=chosen.until,
            limit=chosen.limit, cursor=chosen.cursor,
        )
    )  # fmt: skip


def _ids(body: DeadLetterChoice) -> list[str]:
    if body.filter is not None:
        raise BadInput("Both ids and filter are given.", "Give one of them.", field="filter")
    return list(dict.fromkeys(body.ids or ()))


def _filter(body: DeadLetterChoice) -> DeadLetterFilter:
    if body.filter is None:
        remedy = 'Give {"ids": [...]}, or {"filter": {}} for all of them.'
        raise BadInput("Nothing says which dead letters are meant.", remedy, field="ids")
    return body.filter
