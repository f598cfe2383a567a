"""`horae dlq replay` and `horae dlq replays`: dead letters that run again at a pace, and what can be done with that."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.client.views import Replay


@click.group("replays", cls=Group, examples=("horae dlq replays list", "horae dlq replays pause REPLAY"))
def replays() -> None:
    """Look at replays of dead letters; pause, resume or cancel them."""


def told(api: Api, replay: Replay) -> None:
    """A replay in a line, or as it is."""
    if not api.out.is_for_people:
        return api.out.document(replay.raw)
    of = "" if replay.total is None else f" of {replay.total:,}"
    skipped = f", passed over {replay.skipped:,} ({replay.note})" if replay.skipped else ""
    return api.out.say(f"Replay {replay.id}: {replay.state}; retried {replay.retried:,}{of}{skipped}.")


@replays.command("list", examples=("horae dlq replays list", "horae dlq replays list --state running -o json"))
@click.option(
    "--state", type=click.Choice(["running", "paused", "cancelled", "done"]), help="Only those in this state."
)
@page_options
@remote
async def list_(api: Api, **filters: Any) -> None:
    """List replays, newest first."""
    page = await api.client.dlq.replays(**filters)
    columns: list[Column] = [
        ("ID", "replayId"),
        ("STATE", "state"),
        ("RATE", "rate"),
        ("RETRIED", "retried"),
        ("OF", "total"),
        ("SKIPPED", "skipped"),
        ("CREATED", lambda one: api.out.age(one.get("createdAt"))),
    ]
    api.out.list(page.raw, columns, "There are no replays. Make one with: horae dlq replay --job JOB --rate 10/1s")


@replays.command(examples=("horae dlq replays show REPLAY",))
@click.argument("replay")
@remote
async def show(api: Api, replay: str) -> None:
    """Show a replay and how far it is."""
    api.out.one((await api.client.dlq.get_replay(replay)).raw)


@replays.command(examples=("horae dlq replays pause REPLAY",))
@click.argument("replay")
@remote
async def pause(api: Api, replay: str) -> None:
    """Run nothing more of it until it is resumed."""
    told(api, await api.client.dlq.pause_replay(replay))


@replays.command(examples=("horae dlq replays resume REPLAY",))
@click.argument("replay")
@remote
async def resume(api: Api, replay: str) -> None:
    """Go on where it stopped."""
    told(api, await api.client.dlq.resume_replay(replay))


@replays.command(examples=("horae dlq replays cancel REPLAY",))
@click.argument("replay")
@remote
async def cancel(api: Api, replay: str) -> None:
    """Run nothing more of it, for good; what was retried stays so."""
    told(api, await api.client.dlq.cancel_replay(replay))
