"""`horae bench`: the measurements of horae.bench as commands.

`horae.bench.BENCHES` names them with their help lines; the command `throughput` is that of horae.bench.throughput.
"""

from importlib import import_module
from importlib.util import find_spec

import click

from horae.cli.lazy import Entry, LazyGroup


def benches() -> tuple[Entry, ...]:
    """The benches there are: an installation may come without."""
    found: dict[str, str] = import_module("horae.bench").BENCHES if find_spec("horae.bench") else {}
    return tuple(Entry(name, line, f"horae.bench.{name}") for name, line in found.items())


@click.command(cls=LazyGroup, sections={"Benches": benches()}, examples=("horae bench throughput -o jsonl",))
def bench() -> None:
    """Measure throughput and latency on this machine."""
