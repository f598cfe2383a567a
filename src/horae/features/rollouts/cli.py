"""`horae jobs rollout`: gradual rollouts of job versions: start, compare, promote and abort."""

from typing import Any

import click

from horae.cli.definitions.definition import definition_options, errors_in_flags, read_definition
from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.request import Given, message, request
from horae.errors import BadInput, NotFound
from horae.features.rollouts.client import RolloutInfo
from horae.features.rollouts.model.read import ROLLOUT


@click.group(
    "rollout",
    cls=HoraeGroup,
    examples=(
        "horae jobs rollout start report --command 'python report2.py' --share 10%",
        "horae jobs rollout show report",
        "horae jobs rollout promote report",
    ),
)
def rollout() -> None:
    """Try another version of a job on a share of its new executions; compare, promote or abort it."""


@rollout.command(
    examples=(
        "horae jobs rollout start report --version 7 --share 10% --abort-above 5%",
        "horae jobs rollout start report --command 'python report2.py' --share 10% --by '${params.customer}'",
        "horae jobs rollout start report --weight 6=50 --weight 7=50",
    )
)
@click.argument("job")
@options_of(ROLLOUT)
@click.option(
    "--weight", multiple=True, metavar="N=WEIGHT", help="The weight of a version, instead of a share; repeatable."
)
@definition_options
@remote
async def start(api: Api, job: str, weight: tuple[str, ...], **options: Any) -> None:
    """Send a share of new executions to another version, or change the share of an active rollout."""
    change = read_definition(None, options) or None
    with errors_in_flags(options):
        fields = ROLLOUT.keywords(given_by(ROLLOUT, options))
        started = await api.client.rollouts.start(job, change=change, versions=_weights(weight), **fields)
    _print(api, started, f"A rollout of {started.job} is active: {_shares(started)}.")


def _weights(given: tuple[str, ...]) -> dict[int, float] | None:
    found: dict[int, float] = {}
    for text in given:
        name, _, weight = text.partition("=")
        try:
            version, share = int(name), float(weight)
        except ValueError:
            raise BadInput(f"--weight {text!r} is not a version and its weight.", "Write --weight 7=10.") from None
        if version in found:
            raise BadInput(f"--weight names version {version} twice.", "Give each version one weight.")
        found[version] = share
    return found or None


COLUMNS: list[Column] = [
    ("VERSION", lambda one: f"{one['version']}{' (present)' if one['current'] else ''}"),
    ("SHARE", lambda one: f"{one['share']:g} %"),
    ("SUCCEEDED", "succeeded"),
    ("FAILED", "failed"),
    ("RETRIED", "retried"),
    ("FAILURE RATE", lambda one: "" if one["failureRate"] is None else f"{one['failureRate']:g} %"),
    ("P50", "p50"),
    ("P95", "p95"),
    ("P99", "p99"),
]
JOB = {"ref": "job"}


def _show(api: Api, found: RolloutInfo, given: Given) -> None:
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    api.out.list({"items": found.versions}, COLUMNS, "")
    cause = f" {found.cause}" if found.cause else ""
    return api.out.say(f"The rollout is {found.state}, since {api.out.age(found.raw['changedAt'])}.{cause}")


def _promoted(done: RolloutInfo, given: Given) -> str:
    now = next((one["version"] for one in done.versions if one["current"]), None)
    return f"Job {done.job} is now at the promoted version{'' if now is None else f', {now}'}."


request(
    rollout, "rollouts.get", _show, name="show", called=JOB,
    examples=("horae jobs rollout show report", "horae jobs rollout show report -o json"),
)  # fmt: skip


request(
    rollout, "rollouts.promote", message(_promoted), called=JOB,
    examples=("horae jobs rollout promote report", "horae jobs rollout promote report --version 7"),
)  # fmt: skip


request(
    rollout, "rollouts.abort",
    message("The rollout of {job} is aborted: all new executions run the present version."), called=JOB,
    examples=("horae jobs rollout abort report --reason 'it is slow'",),
)  # fmt: skip


async def show_job(api: Api, job: str) -> None:
    """Mention an active rollout where a job is shown."""
    try:
        found = await api.client.rollouts.get(job)
    except NotFound:  # the job never had a rollout
        return
    if found.state == "on":
        api.out.say(f"A rollout is active: {_shares(found)}. `horae jobs rollout show {found.job}` compares them.")


def _shares(rollout_info: RolloutInfo) -> str:
    return ", ".join(f"version {one['version']} {one['share']:g} %" for one in rollout_info.versions)


def _print(api: Api, found: RolloutInfo, sentence: str) -> None:
    if api.out.is_for_people:
        api.out.say(sentence)
    else:
        api.out.document(found.raw)
