"""`horae dlq replays`: show and control replays, which run dead letters again at a limited rate."""

import click

from horae.cli.lazy import HoraeGroup
from horae.cli.output import Age, Column
from horae.cli.remote import Api
from horae.cli.request import Given, lists, one, request
from horae.client.views import ReplayInfo


@click.group("replays", cls=HoraeGroup, examples=("horae dlq replays list", "horae dlq replays pause REPLAY"))
def replays() -> None:
    """Show replays of dead letters; pause, resume or cancel them."""


def show_replay(api: Api, replay: ReplayInfo, given: Given) -> None:
    """Print a replay in one line, or as a document."""
    if not api.out.is_for_people:
        return api.out.document(replay.raw)
    of = "" if replay.total is None else f" of {replay.total:,}"
    skipped = f", skipped {replay.skipped:,} ({replay.note})" if replay.skipped else ""
    return api.out.say(f"Replay {replay.id}: {replay.state}; retried {replay.retried:,}{of}{skipped}.")


COLUMNS: list[Column] = [
    ("ID", "replayId"),
    ("STATE", "state"),
    ("RATE", "rate"),
    ("RETRIED", "retried"),
    ("OF", "total"),
    ("SKIPPED", "skipped"),
    ("CREATED", Age("createdAt")),
]
ONE = {"replay_id": "replay"}
request(
    replays, "dlq.replays",
    lists(COLUMNS, "There are no replays. Create one with: horae dlq replay --job JOB --rate 10/1s"), name="list",
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
