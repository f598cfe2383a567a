"""`horae report`: report progress, a heartbeat, a checkpoint or a result of a running command.

The reports are lines in the file that HORAE_OUTPUT names.
"""

import errno
import os

import click
import msgspec

from horae.cli.lazy import HoraeCommand
from horae.cli.values import read_json
from horae.errors import BadInput
from horae.private import open_file


@click.command(
    cls=HoraeCommand,
    examples=(
        "horae report --progress 50 --message 'half of the files'",
        """horae report --result '{"rows": 1200}'""",
        """horae report --checkpoint '{"done": 600}'""",
    ),
)
@click.option("--progress", type=click.FloatRange(0, 100), metavar="PERCENT", help="The progress, from 0 to 100.")
@click.option("--message", metavar="TEXT", help="A message about the progress.")
@click.option("--result", metavar="JSON", help="The execution's result; @FILE reads it from a file, - from the input.")
@click.option(
    "--checkpoint",
    metavar="JSON",
    help="The value of HORAE_CHECKPOINT in the next attempt; @FILE reads it from a file, - from the input.",
)
@click.option("--heartbeat", is_flag=True, help="Only report that the job is alive, for jobs with timeouts.heartbeat.")
def report(
    progress: float | None, message: str | None, result: str | None, checkpoint: str | None, heartbeat: bool
) -> None:
    """Report progress, a checkpoint or a result from inside a running job."""
    path = os.environ.get("HORAE_OUTPUT")
    if not path:
        raise BadInput(
            "HORAE_OUTPUT is not set: `horae report` is not inside a running job.",
            "Call `horae report` from a command that a Horae worker runs.",
        )
    line: dict[str, object] = {}
    if progress is not None:
        line["progress"] = int(progress) if progress.is_integer() else progress
    if message is not None:
        line["message"] = message
    if result is not None:
        line["result"] = msgspec.Raw(msgspec.json.encode(read_json(result, "--result")))
    if checkpoint is not None:
        line["checkpoint"] = msgspec.Raw(msgspec.json.encode(read_json(checkpoint, "--checkpoint")))
    if heartbeat:
        line["heartbeat"] = True
    if not line:
        known = "--progress, --message, --result, --checkpoint or --heartbeat"
        raise click.UsageError(f"There is nothing to report: give {known}.")
    _append(path, msgspec.json.encode(line) + b"\n")


def _append(path: str, line: bytes) -> None:
    """Append a line with one write, so that lines of concurrent reports do not mix."""
    try:
        with open(open_file(path, os.O_RDWR | os.O_APPEND), "rb+", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # a part of a line, because the disk was full
                line = b"\n" + line
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        remedy = "The worker sets HORAE_OUTPUT: do not change it, and make room on its disk."
        raise BadInput(f"{path} cannot be written: {error.strerror}.", remedy) from None
