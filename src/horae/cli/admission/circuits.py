"""`horae circuits`: states of circuit breakers of jobs; open, close and reset them by hand."""

from typing import Any

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Column, TimeField
from horae.cli.remote import Api
from horae.cli.request import lists, message, request
from horae.cli.terminal import echo
from horae.client.kernel.circuits import CircuitInfo, JobCircuitInfo

OPEN = "horae circuits open report --reason 'the upstream is down' --for 30m"
COLUMNS: list[Column] = [
    ("JOB", "job"),
    ("KEY", "key"),
    ("STATE", lambda one: f"{one['state']}{' (by hand)' if one.get('forced') else ''}"),
    ("SINCE", TimeField("since")),
    ("UNTIL", TimeField("until")),
    ("FAILED", lambda one: f"{one['failed']}/{one['attempts']}"),
    ("WAITING", "waiting"),
    ("BY", "changedBy"),
    ("CAUSE", "cause"),
]
CHANGES: list[Column] = [
    ("CHANGED", TimeField("at")),
    ("KEY", "key"),
    ("STATE", "state"),
    ("BY", "changedBy"),
    ("CAUSE", "cause"),
]
NAMES = {"ref": "job", "length": "--for"}


@click.group(cls=HoraeGroup, examples=("horae circuits list", "horae circuits show report", OPEN))
def circuits() -> None:
    """Show circuit breakers of jobs; open, close and reset them."""


def _show(api: Api, circuit: JobCircuitInfo, given: dict[str, Any]) -> None:
    found = circuit.raw
    if not api.out.is_for_people:
        return api.out.document(found)
    api.out.list({"items": found["circuits"]}, COLUMNS, "No circuit of this job has ever opened.")
    if found["changes"]:
        echo()
        api.out.table(found["changes"], CHANGES)
    return None


def _sentence(circuit: CircuitInfo, given: dict[str, Any]) -> str:
    of = f" for {circuit.key}" if circuit.key else ""
    hand = " by hand" if circuit.forced else ""
    until = f" until {circuit.raw['until']}" if circuit.until else ""
    return f"The circuit of {circuit.job}{of} is {circuit.state}{hand}{until}; {circuit.waiting:,} waiting."


request(
    circuits, "circuits.list", lists(COLUMNS, "All circuits are closed."),
    examples=("horae circuits list", "horae circuits list -o json"),
)  # fmt: skip
request(
    circuits, "circuits.get", _show, name="show", called=NAMES,
    examples=("horae circuits show report", "horae circuits show report --key acme -o json"),
)  # fmt: skip
request(
    circuits,
    "circuits.open",
    message(_sentence),
    called=NAMES,
    examples=(OPEN, "horae circuits open report --key acme"),
)
request(
    circuits, "circuits.close", message(_sentence), called=NAMES,
    examples=("horae circuits close report --reason 'failures are expected today'",),
)  # fmt: skip
request(circuits, "circuits.reset", message(_sentence), called=NAMES, examples=("horae circuits reset report",))
