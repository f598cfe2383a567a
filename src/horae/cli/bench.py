"""`horae bench`: the measurements of horae.bench as commands.

`horae.bench.BENCHES` names them with their help lines; the command `throughput` is that of horae.bench.throughput.
"""

from importlib import import_module
from importlib.util import find_spec

import click

from horae.cli.lazy import LazyGroup


def benches() -> dict[str, str]:
    """The benches there are: an installation may come without."""
    found: dict[str, str] = import_module("horae.bench").BENCHES if find_spec("horae.bench") else {}
    return found


@click.command(
    cls=LazyGroup, package="horae.bench", sections={"Benches": benches()}, examples=("horae bench throughput -o jsonl",)
)
def bench() -> None:
    """Measure throughput and latency on this machine."""
