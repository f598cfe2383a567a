"""`horae executions graph` and other commands for running workflows."""

from collections.abc import Mapping
from typing import Any, Literal

import click

from horae.cli.executions.waiting import finish, timeout_option
from horae.cli.lazy import HoraeCommand
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.cli.request import Show, lists, message, request
from horae.cli.values import read_json
from horae.env import Micros

MARKS = {
    "pending": "·",
    "held": "‖",
    "waiting": "…",
    "running": ">",
    "success": "+",
    "failed": "x",
    "skipped": "-",
    "cancelled": "/",
}


def depths(graph: Mapping[str, Any]) -> dict[str, int]:
    """Return for each step the number of steps before it on the longest path. The nodes are in execution order."""
    before: dict[str, list[str]] = {}
    for edge in graph["edges"]:
        before.setdefault(edge["to"], []).append(edge["from"])
    found: dict[str, int] = {}
    for node in graph["nodes"]:
        found[node["step"]] = max((found.get(name, 0) + 1 for name in before.get(node["step"], ())), default=0)
    return found


def note_of(node: Mapping[str, Any]) -> str:
    """Return the note that is shown beside the state of a step."""
    if items := node.get("items"):
        reused = f", {items['reused']} reused" if items.get("reused") else ""
        return f"{items['success'] + items['failed']} of {items['total']}, {items['failed']} failed{reused}"
    if node.get("error"):
        return str(node["error"].get("message") or node["error"].get("type"))[:80]
    if node["status"] == "waiting":
        return _awaited(node)
    return str(node.get("reason") or "")


def _awaited(node: Mapping[str, Any]) -> str:
    """Describe the thing that a step waits for, and the time limit."""
    wait = node.get("waitsFor") or {}
    named = f" {wait['name']}" if wait.get("name") else ""
    roles = f" of {', '.join(wait['roles'])}" if wait.get("roles") else ""
    until = f" until {node['wakeAt']}" if node.get("wakeAt") else ""
    question = f": {wait['message']}" if wait.get("message") else ""
    return f"{node['kind']}{named}{roles}{until}{question}"


@click.command(
    cls=HoraeCommand, examples=("horae executions graph EXECUTION", "horae executions graph EXECUTION -o json")
)
@click.argument("execution")
@remote
async def graph(api: Api, execution: str) -> None:
    """Show the steps of a workflow's execution, their states and their dependencies."""
    found = await api.client.executions.graph(execution)
    if not api.out.is_for_people:
        api.out.document(found)
        return
    level = depths(found)
    paused = ", paused" if found["paused"] else ""
    api.out.say(f"{found['job']} version {found['version']}: {found['status']}{paused}")
    shown: list[Column] = [
        ("", lambda node: MARKS.get(node["status"], "?")),
        ("STEP", lambda node: "  " * level[node["step"]] + node["step"]),
        ("STATUS", "status"),
        ("WAITED", lambda node: _seconds(node.get("waited"))),
        ("RAN", lambda node: _seconds(node.get("seconds"))),
        ("PATH", lambda node: "*" if node.get("critical") else ""),
        ("EXECUTION", lambda node: node.get("executionId") or ""),
        ("NOTE", note_of),
    ]
    api.out.list({"items": found["nodes"]}, shown, "The workflow has no steps.")
    spent = found.get("criticalSeconds")
    if spent and found["criticalPath"]:
        waited, ran = _seconds(spent["waited"]), _seconds(spent["ran"])
        api.out.say(f"Critical path (*): {waited} waiting for workers, {ran} running.")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} s"


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae executions rerun EXECUTION",
        "horae executions rerun EXECUTION --from failed --wait",
        """horae executions rerun EXECUTION --from load --params '{"day": "2026-11-14"}'""",
    ),
)
@click.argument("execution")
@click.option(
    "--from",
    "since",
    metavar="STEP",
    help="Start at this step, or with `failed` at the failed steps; results of earlier successful steps are reused.",
)
@click.option(
    "--params",
    metavar="JSON",
    help="Changes to the params, as a merge patch; @FILE reads it from a file, - from the input.",
)
@click.option("--latest", is_flag=True, help="Use the present definitions instead of the original ones.")
@click.option("--break", "breakpoints", metavar="STEP", multiple=True, help="Stop before this step; repeatable.")
@click.option(
    "-w", "--wait", is_flag=True, help="Wait until the new execution ends; exit 1 unless it succeeds or is skipped."
)
@timeout_option
@remote
async def rerun(
    api: Api,
    execution: str,
    since: str | None,
    params: str | None,
    latest: bool,
    breakpoints: tuple[str, ...],
    wait: bool,
    timeout: Micros | None,
) -> None:
    """Run an ended execution again, as a new execution. A workflow can begin at a given step or at its failed steps."""
    patch = None if params is None else read_json(params, "--params")
    new_id = await api.client.executions.rerun(
        execution, since=since, params=patch, latest=latest, breakpoints=breakpoints
    )  # fmt: skip
    execution_info = await api.client.executions.get(new_id)
    if wait or timeout is not None:
        await finish(api, execution_info, timeout=timeout)
        return
    if not api.out.is_for_people:
        api.out.document(execution_info.raw)
        return
    api.out.say(f"Execution {new_id} is the new run.")


def _becomes(became: str) -> Show:
    return message(f"Execution {{executionId}} {became}.")


APPROVALS: list[Column] = [
    ("SINCE", "since"), ("WORKFLOW", "jobName"), ("STEP", "step"), ("MESSAGE", "message"),
    ("ROLES", lambda one: ", ".join(one["roles"])), ("UNTIL", "until"), ("EXECUTION", "executionId"),
]  # fmt: skip
ONE = {"execution_id": "execution"}
STEP = {**ONE, "step": "step"}


def add_commands(group: click.Group) -> None:
    """Add the commands about workflows to the group `executions`."""
    group.add_command(graph)
    request(
        group, "executions.pause", _becomes("is paused"), called=ONE, examples=("horae executions pause EXECUTION",)
    )
    request(
        group, "executions.resume", _becomes("continues"), called=ONE, examples=("horae executions resume EXECUTION",)
    )
    request(
        group, "executions.approvals", lists(APPROVALS, "No step waits for approval."),
        examples=("horae executions approvals", "horae executions approvals -o json"),
    )  # fmt: skip
    request(
        group, "executions.approve", _becomes("continues"), called=STEP,
        examples=("horae executions approve EXECUTION", "horae executions approve EXECUTION ok"),
    )  # fmt: skip
    request(
        group, "executions.reject", _becomes("was rejected"), called=STEP,
        examples=("horae executions reject EXECUTION --comment 'not on a Friday'",),
    )  # fmt: skip
    request(
        group, "executions.skip", _becomes("continues without {step}"), called=ONE,
        examples=("horae executions skip EXECUTION extract --reason 'no data today'",),
    )  # fmt: skip
    request(
        group, "executions.complete", _becomes("treats {step} as done"), called=ONE,
        examples=("""horae executions complete EXECUTION extract --result '{"rows": 3}'""",),
    )  # fmt: skip
    group.add_command(rerun)


@click.command(
    cls=HoraeCommand, examples=("horae jobs grid daily", "horae jobs grid daily --by interval --limit 30 -o json")
)
@click.argument("job")
@click.option(
    "--by",
    type=click.Choice(["run", "interval"]),
    help="The order of the executions: by run, newest first, or by data interval, which is the default.",
)
@page_options
@remote
async def grid(api: Api, job: str, by: Literal["run", "interval"] | None, **paging: Any) -> None:
    """Show a job's executions and the states of their steps, one line each."""
    found = (await api.client.jobs.grid(job, by=by or "interval", **paging)).raw
    if api.out.is_for_people and found["steps"]:
        api.out.say(f"Steps: {', '.join(found['steps'])}")
    columns: list[Column] = [
        ("DATA FROM", lambda one: (one.get("interval") or {}).get("start")),
        ("TO", lambda one: (one.get("interval") or {}).get("end")),
        ("DUE", "at"),
        ("STATUS", "status"),
        ("RAN", lambda one: "" if one.get("seconds") is None else f"{one['seconds']:.3g} s"),
        ("STEPS", lambda one: " ".join(MARKS.get(one["steps"].get(step, ""), " ") for step in found["steps"])),
        ("EXECUTION", "executionId"),
    ]
    api.out.list(found, columns, "The job has not run yet.")
