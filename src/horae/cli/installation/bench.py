"""`horae bench`: the throughput and latency of a server and a worker on this machine."""

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import output_option

ROWS = (
    ("submissions", "submissions", "1/s"),
    ("executions", "executions", "1/s"),
    ("pick-up p50", "pickUpP50", "ms"),
    ("pick-up p99", "pickUpP99", "ms"),
)


@click.command(
    cls=HoraeCommand,
    examples=("horae bench", "horae bench --store postgresql://horae@db/empty --executions 200000 -o json"),
)
@click.option("--store", metavar="URL", help="An empty database to measure on.  [default: a temporary SQLite file]")
@click.option(
    "--executions", type=click.IntRange(min=1), default=50_000, show_default=True,
    help="The number of executions to submit and run.",
)  # fmt: skip
@click.option(
    "--samples", type=click.IntRange(min=1), default=100, show_default=True, help="The number of pick-ups to time."
)
@output_option
def bench(store: str | None, executions: int, samples: int, output: str) -> None:
    """Measure throughput and latency on this machine.

    A server and a worker start as separate processes and talk HTTP. Afterwards they are stopped, and the SQLite file is
    deleted. Submissions use the SDK's submit_many; each is on disk before it is acknowledged. Executions are Python
    functions that do nothing; their rate is measured from the first submission to the last stored result. A pick-up is
    the time from a submission to the first line of its function while nothing else runs.
    """
    from horae.cli.installation.bench_run import measure
    from horae.cli.output import Printer
    from horae.cli.process import run
    from horae.env import system_env

    env = system_env()
    found = run(measure(env, store, executions, samples))
    out = Printer(output, env.now)  # type: ignore[arg-type]
    if out.is_for_people:
        rows = [{"name": name, "value": _figure(found[key]), "unit": unit} for name, key, unit in ROWS]
        out.table(rows, [("FIGURE", "name"), ("VALUE", "value"), ("UNIT", "unit")])
    else:
        out.document(found)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
