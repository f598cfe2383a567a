"""`python -m bench`: one command per bench."""

import click

from bench import BENCHES
from horae.cli.lazy import CommandEntry
from horae.cli.main import RootGroup

ENTRIES = tuple(CommandEntry(name, line, f"bench.measures.{name}") for name, line in BENCHES.items())


@click.command(
    cls=RootGroup,
    sections={"Benches": ENTRIES},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=("python -m bench throughput -o jsonl",),
)
def main() -> None:
    """Measure Horae on this machine."""


if __name__ == "__main__":
    main(prog_name="python -m bench")
