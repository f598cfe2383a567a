"""`horae circuits`: how circuit breakers of jobs stand; opened, closed and reset by hand."""

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo
from horae.client.kernel.circuits import Circuit

OPEN = "horae circuits open report --reason 'the upstream is down' --for 30m"


@click.group(cls=Group, examples=("horae circuits list", "horae circuits show report", OPEN))
def circuits() -> None:
    """Look at circuit breakers of jobs; open, close and reset them."""


def _columns(api: Api) -> list[Column]:
    return [
        ("JOB", "job"),
        ("KEY", "key"),
        ("STATE", lambda one: f"{one['state']}{' (by hand)' if one.get('forced') else ''}"),
        ("SINCE", lambda one: api.out.age(one.get("since"))),
        ("UNTIL", lambda one: api.out.age(one.get("until"))),
        ("FAILED", lambda one: f"{one['failed']}/{one['attempts']}"),
        ("WAITING", "waiting"),
        ("BY", "by"),
        ("CAUSE", "cause"),
    ]


@circuits.command("list", examples=("horae circuits list", "horae circuits list -o json"))
@remote
async def list_(api: Api) -> None:
    """List circuits that are open or half-open."""
    page = await api.client.circuits.list()
    api.out.list(page.raw, _columns(api), "All circuits are closed.")


key_option = click.option("--key", metavar="VALUE", help="The value whose circuit is meant, where each has one.")
reason_option = click.option("--reason", metavar="TEXT", help="Why; it is kept with the change.")


@circuits.command(examples=("horae circuits show report", "horae circuits show report --key acme -o json"))
@click.argument("job")
@key_option
@remote
async def show(api: Api, job: str, key: str | None) -> None:
    """Show a job's circuit, or those of its keys, and what they went through."""
    found = (await api.client.circuits.get(job, key=key)).raw
    if not api.out.is_for_people:
        return api.out.document(found)
    api.out.list({"items": found["circuits"]}, _columns(api), "None of its circuits ever opened.")
    if found["changes"]:
        echo()
        changes: list[Column] = [
            ("CHANGED", lambda one: api.out.age(one["at"])),
            ("KEY", "key"),
            ("STATE", "state"),
            ("BY", "by"),
            ("CAUSE", "cause"),
        ]
        api.out.table(found["changes"], changes)
    return None


def _tell(api: Api, circuit: Circuit) -> None:
    if not api.out.is_for_people:
        return api.out.document(circuit.raw)
    of = f" for {circuit.key}" if circuit.key else ""
    hand = " by hand" if circuit.forced else ""
    until = f" until {circuit.raw['until']}" if circuit.until else ""
    api.out.say(f"The circuit of {circuit.job}{of} is {circuit.state}{hand}{until}; {circuit.waiting:,} waiting.")
    return None


@circuits.command(examples=(OPEN, "horae circuits open report --key acme"))
@click.argument("job")
@key_option
@reason_option
@click.option("--for", "length", metavar="SPAN", help="How long it stays open; then probes are tried.")
@remote
async def open(api: Api, job: str, key: str | None, reason: str | None, length: str | None) -> None:
    """Start nothing of a job, or of one key, until its circuit is reset or the time is over."""
    _tell(api, await api.client.circuits.open(job, key=key, reason=reason, length=length))


@circuits.command(examples=("horae circuits close report --reason 'failures are expected today'",))
@click.argument("job")
@key_option
@reason_option
@remote
async def close(api: Api, job: str, key: str | None, reason: str | None) -> None:
    """Start everything, whatever fails, until the circuit is reset."""
    _tell(api, await api.client.circuits.close(job, key=key, reason=reason))


@circuits.command(examples=("horae circuits reset report",))
@click.argument("job")
@key_option
@reason_option
@remote
async def reset(api: Api, job: str, key: str | None, reason: str | None) -> None:
    """Close a circuit and count anew; what was done by hand ends."""
    _tell(api, await api.client.circuits.reset(job, key=key, reason=reason))
