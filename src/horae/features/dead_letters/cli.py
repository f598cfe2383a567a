"""`horae dlq`: show, retry, replay or discard dead letters (executions that failed for good), and control replays."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from horae.cli.fields import options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.prompts import confirm
from horae.cli.remote import Api, remote
from horae.cli.request import Given, lists, one, request
from horae.cli.terminal import echo
from horae.cli.values import params as read_params
from horae.client.views import ApiDocument, BulkResult, ReplayInfo
from horae.env import Micros
from horae.errors import BadInput
from horae.features.dead_letters.model import LETTER_FILTER
from horae.model.base.ids import instant_of
from horae.model.base.instant import format_instant

filter_options = options_of(LETTER_FILTER)
REPLAY_COLUMNS: list[Column] = [
    ("ID", "replayId"),
    ("STATE", "state"),
    ("RATE", "rate"),
    ("RETRIED", "retried"),
    ("TOTAL", "total"),
    ("SKIPPED", "skipped"),
    ("CREATED", TimeField("createdAt")),
]
ONE = {"replay_id": "replay"}
MILLISECOND: Micros = 1000  # the precision of the creation time in an id


def param_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--params", metavar="JSON", help="Params to change, as a JSON object; null removes one."),
        click.option("--param", multiple=True, metavar="NAME=VALUE", help="A param to change; repeatable."),
    ):
        command = option(command)
    return command


@click.group(
    cls=HoraeGroup, examples=("horae dlq list", "horae dlq groups", "horae dlq retry --job daily-report --yes")
)
def dlq() -> None:
    """List dead letters; retry, replay or discard them."""


COLUMNS: list[Column] = [
    ("EXECUTION", lambda one: one["execution"]["executionId"]),
    ("JOB", lambda one: one["execution"].get("jobName")),
    ("FAILED", TimeField("execution.completedAt")),
    ("ATTEMPTS", lambda one: one["execution"].get("attempt")),
    ("STATE", "state"),
    ("STEPS", lambda one: ", ".join(step["step"] for step in one.get("steps", ()))),
    ("ERROR", lambda one: (one["execution"].get("errorMessage") or "").partition("\n")[0][:80]),
]
GROUPS: list[Column] = [
    ("COUNT", "count"),
    ("JOB", "jobName"),
    ("ERROR TYPE", "errorType"),
    ("FIRST", TimeField("oldestAt")),
    ("LAST", TimeField("newestAt")),
    ("EXECUTION", "newestId"),
    ("ERROR", lambda one: (one.get("errorMessage") or "").partition("\n")[0][:80]),
]
request(
    dlq, "dlq.list", lists(COLUMNS, "There are no dead letters."),
    examples=("horae dlq list", "horae dlq list --job daily-report -o json"),
)  # fmt: skip


def _show_groups(api: Api, found: ApiDocument, given: Given) -> None:
    api.out.list(found.raw, GROUPS, "There are no dead letters.")
    if not found.raw["complete"]:
        echo("Not all dead letters were counted. Use --job or --since to select fewer.", err=True)


request(
    dlq,
    "dlq.groups",
    _show_groups,
    examples=("horae dlq groups", "horae dlq groups --since 2026-11-15T00:00:00Z -o json"),
)


@dlq.command(examples=("horae dlq show EXECUTION",))
@click.argument("execution")
@remote
async def show(api: Api, execution: str) -> None:
    """Show a dead letter with its error."""
    found = await api.client.dlq.get(execution)
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    shown = {"state": found.state, "retriedAs": found.retried_as, **found.execution.raw}
    api.out.one(found.raw["execution"] | {n: v for n, v in shown.items() if v is not None}, leave_out=("error",))
    if found.execution.error and found.execution.error.traceback:
        echo(f"\n{found.execution.error.traceback.rstrip()}")
    for failed in found.steps:
        reason = "" if failed.error is None else f": {failed.error.message or failed.error.type}"
        echo(f'Step "{failed.step}" failed{reason}' + (f" ({failed.execution_id})" if failed.execution_id else ""))
    return None


@dlq.command(
    examples=("horae dlq retry EXECUTION", "horae dlq retry --job daily-report --error-type TimeoutError --yes")
)
@click.argument("execution", nargs=-1)
@filter_options
@click.option("--all", "everything", is_flag=True, help="All open dead letters.")
@param_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@remote
async def retry(
    api: Api, execution: tuple[str, ...], everything: bool, yes: bool, param: tuple[str, ...], params: str | None,
    **filters: Any,
) -> None:  # fmt: skip
    """Run dead letters again as new executions, chosen by id or by filter, perhaps with other params.

    A workflow continues from its failed steps; results of successful steps are reused.
    """
    chosen = _chosen(execution, everything, filters)
    await _bulk(api, "retry", execution, {**chosen, **_edited(param, params)}, yes)


@dlq.command(
    examples=(
        "horae dlq replay --job daily-report --rate 10/1s",
        "horae dlq replay --all --rate 100/1m --param region=eu",
    )
)
@filter_options
@click.option("--all", "everything", is_flag=True, help="All open dead letters.")
@click.option("--rate", metavar="RATE", help="The highest rate of retries, such as 10/1s; unlimited by default.")
@param_options
@remote
async def replay(
    api: Api, everything: bool, rate: str | None, param: tuple[str, ...], params: str | None, **filters: Any
) -> None:
    """Run all matching dead letters again at a limited rate, in the background on the servers."""
    chosen = _chosen((), everything, filters)
    show_replay(api, await api.client.dlq.replay(rate=rate, **chosen, **_edited(param, params)), {})


@dlq.command(examples=("horae dlq discard EXECUTION", "horae dlq discard --until 2026-11-01T00:00:00Z --yes"))
@click.argument("execution", nargs=-1)
@filter_options
@click.option("--all", "everything", is_flag=True, help="All open dead letters.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@remote
async def discard(api: Api, execution: tuple[str, ...], everything: bool, yes: bool, **filters: Any) -> None:
    """Remove dead letters, chosen by id or by filter, from the list of open ones; the executions stay in history."""
    await _bulk(api, "discard", execution, _chosen(execution, everything, filters), yes)


def _edited(param: tuple[str, ...], params: str | None) -> dict[str, Any]:
    changed = read_params(param, params)
    return {"params": changed} if changed else {}


def _chosen(ids: tuple[str, ...], everything: bool, filters: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if value is not None}
    if ids and (given or everything):
        raise BadInput("Ids and a filter cannot be combined.", "Give either ids or a filter.")
    if not ids and not given and not everything:
        raise BadInput("No dead letters are selected.", "Give the ids of executions, a filter such as --job, or --all.")
    return given


async def _bulk(api: Api, verb: str, ids: tuple[str, ...], filters: dict[str, Any], yes: bool) -> None:
    """Act on these ids, or show the number of matches, ask for confirmation, and act on them page by page.

    Executions that were created later than the newest match are not included, such as retried ones that fail again.
    """
    act = api.client.dlq.retry if verb == "retry" else api.client.dlq.discard
    if ids:
        return _print_summary(api, verb, [await act(list(ids), **filters)])
    shown = await api.client.dlq.list(limit=1000, **{name: filters[name] for name in filters if name != "params"})
    count, more = len(shown), shown.next_cursor is not None
    api.out.say(f"{'At least ' if more else ''}{count} dead letter{' matches' if count == 1 else 's match'}.")
    if not count:
        return _print_summary(api, verb, [])
    if not yes:
        confirm(f"{verb.capitalize()} {'them' if count > 1 else 'it'}?")
    filters["until"] = format_instant(instant_of(UUID(shown[0].execution.id)) + MILLISECOND)
    done = [await act(**filters)]
    while done[-1].more:
        done.append(await act(**filters, cursor=done[-1].next_cursor))
    return _print_summary(api, verb, done)


def _print_summary(api: Api, verb: str, done: list[BulkResult]) -> None:
    execution_ids = [execution for bulk in done for execution in bulk.execution_ids]
    summary = {
        "matched": sum(bulk.matched for bulk in done),
        "done": sum(bulk.done for bulk in done),
        "skipped": sum(bulk.skipped for bulk in done),
        "executionIds": execution_ids,
        "notes": [note for bulk in done for note in bulk.notes],
    }
    if not api.out.is_for_people:
        return api.out.document(summary)
    past = "Retried" if verb == "retry" else "Discarded"
    skipped = f", skipped {summary['skipped']}" if summary["skipped"] else ""
    api.out.say(f"{past} {summary['done']}{skipped}.")
    for line in [*execution_ids[:10], *(["..."] if len(execution_ids) > 10 else []), *map(str, summary["notes"])]:  # type: ignore[call-overload]
        api.out.say(line)
    return None


@click.group("replays", cls=HoraeGroup, examples=("horae dlq replays list", "horae dlq replays pause REPLAY"))
def replays() -> None:
    """Show replays of dead letters; pause, resume or cancel them."""


dlq.add_command(replays)


def show_replay(api: Api, replay: ReplayInfo, given: Given) -> None:
    """Print a replay in one line, or as a document."""
    if not api.out.is_for_people:
        return api.out.document(replay.raw)
    of = "" if replay.total is None else f" of {replay.total:,}"
    skipped = f", skipped {replay.skipped:,} ({replay.note})" if replay.skipped else ""
    return api.out.say(f"Replay {replay.id}: {replay.state}; retried {replay.retried:,}{of}{skipped}.")


request(
    replays, "dlq.replays",
    lists(REPLAY_COLUMNS, "There are no replays. Create one with: horae dlq replay --job JOB --rate 10/1s"),
    name="list",
    examples=("horae dlq replays list", "horae dlq replays list --state running -o json"),
)  # fmt: skip


request(replays, "dlq.get_replay", one, name="show", called=ONE, examples=("horae dlq replays show REPLAY",))
for verb in ("pause", "resume", "cancel"):
    request(
        replays,
        f"dlq.{verb}_replay",
        show_replay,
        name=verb,
        called=ONE,
        examples=(f"horae dlq replays {verb} REPLAY",),
    )
