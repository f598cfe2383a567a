"""`horae bench`: the measurements of horae.bench as commands.

`horae.bench.BENCHES` names them with their help lines; the command `throughput` is that of horae.bench.throughput.
"""

import click

from horae.bench import BENCHES
from horae.cli.lazy import LazyGroup


@click.command(
    cls=LazyGroup, package="horae.bench", sections={"Benches": BENCHES}, examples=("horae bench throughput -o jsonl",)
)
def bench() -> None:
    """Measure throughput and latency on this machine."""
