"""`horae`: the entry point, the list of commands, and the reporting of errors."""

import os
import sys
from typing import Any

import click

from horae.cli.hiding import hide
from horae.cli.lazy import CommandEntry, LazyGroup, with_features
from horae.cli.terminal import echo, guard_terminals, style
from horae.errors import HoraeError, Unauthorized
from horae.model.base.control_characters import visible
from horae.version import __version__

KERNEL: dict[str, tuple[CommandEntry, ...]] = {
    "Run": (
        CommandEntry("up", "Run everything in one process: API, scheduler and a worker.", "horae.cli.installation.up"),
        CommandEntry("server", "Run a server: API, scheduler and worker gateway.", "horae.cli.installation.server"),
        CommandEntry("worker", "Run a worker that executes jobs for a server.", "horae.cli.fleet.worker"),
    ),
    "Jobs": (
        CommandEntry(
            "apply",
            "Create or change jobs, templates and calendars from a file or an app.",
            "horae.cli.definitions.apply",
        ),
        CommandEntry("jobs", "Create, list, change and trigger jobs.", "horae.cli.definitions.jobs"),
        CommandEntry(
            "triggers", "Add, list, change, pause and preview triggers of jobs.", "horae.cli.triggers.triggers"
        ),
        CommandEntry("fires", "List past and coming fires of triggers.", "horae.cli.triggers.fires"),
        CommandEntry("calendars", "Write, list and preview calendars.", "horae.cli.triggers.calendars"),
        CommandEntry("executions", "List, follow, signal and cancel executions.", "horae.cli.executions.executions"),
        CommandEntry("circuits", "Show circuit breakers of jobs; override them.", "horae.cli.admission.circuits"),
        CommandEntry("explain", "Show why an execution or a job does not run.", "horae.cli.executions.explain"),
        CommandEntry(
            "report",
            "Report progress, a checkpoint or a result from inside a running job.",
            "horae.cli.executions.report",
        ),
    ),
    "Operate": (
        CommandEntry(
            "workers",
            "List, enrol and drain workers, and scale them with a queue.",
            "horae.cli.fleet.workers",
        ),
        CommandEntry("queues", "List, configure, pause, drain, purge and hold queues.", "horae.cli.admission.queues"),
        CommandEntry(
            "namespaces",
            "Create, show, erase and delete namespaces; show their quotas and usage.",
            "horae.cli.tenancy.namespaces",
        ),
        CommandEntry("keys", "Create, list, rotate and revoke keys.", "horae.cli.tenancy.keys"),
        CommandEntry(
            "secrets", "Set and remove secrets, which jobs refer to as secret://NAME.", "horae.cli.tenancy.secrets"
        ),
        CommandEntry("master-key", "Replace the master key, which encrypts all secrets.", "horae.cli.tenancy.secrets"),
        CommandEntry("sign-in", "Print a link with which one browser can sign in.", "horae.cli.tenancy.sign_in"),
        CommandEntry(
            "audit", "Show the audit log; check executions and fires of a live store.", "horae.cli.installation.audit"
        ),
        CommandEntry("doctor", "Check the installation and show remedies.", "horae.cli.installation.doctor"),
        CommandEntry("db", "Upgrade, move, back up and restore the store.", "horae.cli.installation.db"),
        CommandEntry(
            "config",
            "Show the settings with their origins, and the enabled features.",
            "horae.cli.installation.config",
        ),
        CommandEntry("bench", "Measure throughput and latency on this machine.", "horae.cli.installation.bench"),
        CommandEntry(
            "version", "Show the versions of Horae and its main dependencies.", "horae.cli.installation.version"
        ),
    ),
}
SECTIONS = with_features(KERNEL)
KEY_REMEDY = (
    "Set HORAE_KEY to a key. On the server's own machine, commands read the key from the file admin.key in the folder "
    "in which they are started, or in the folder that HORAE_DATA names."
)
UNEXPECTED = 70  # EX_SOFTWARE: a bug in Horae, not a wrong request


class RootGroup(LazyGroup):
    """The root command. It turns an error of Horae into a message on stderr and an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for arg in args:
            try:
                arg.encode()
            except UnicodeEncodeError:  # a byte of another encoding became a surrogate
                raise click.UsageError(f"The argument {arg!r} is not text in UTF-8.", ctx) from None
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        _warn_of_misspelt_variables()
        try:
            return super().invoke(ctx)
        except HoraeError as error:
            print_error(error.detail, KEY_REMEDY if isinstance(error, Unauthorized) else error.remedy)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(130)


def _warn_of_misspelt_variables() -> None:
    """Warn about unknown variables that look like misspelt settings, because nothing else reports them."""
    if any(name.startswith("HORAE_") for name in os.environ):
        from horae.config.load import misspelled

        for name, meant in sorted(misspelled(os.environ).items()):
            echo(f"Warning: {name} is not a setting of Horae. Did you mean {meant}?", err=True)


@click.command(
    cls=RootGroup,
    sections=SECTIONS,
    context_settings={"max_content_width": 100, "auto_envvar_prefix": None},
    examples=("horae up --demo", "horae jobs create hello --command 'echo hello' --schedule '* * * * *'"),
)
@click.version_option(__version__, prog_name="horae", message="%(prog)s %(version)s")
def cli() -> None:
    """A distributed job scheduler: cron at scale, a durable job queue and a workflow engine in one system.

    Commands talk to the server at HORAE_URL (http://127.0.0.1:8420) with the key in HORAE_KEY; on the server's own
    machine they find the key by themselves. Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 not found, 4 conflict.
    """


def print_error(detail: str, remedy: str = "") -> None:
    """Print an error on stderr: the problem, then the remedy; in colour on a terminal only."""
    colour = None if "NO_COLOR" not in os.environ else False
    echo(f"{style('Error:', fg='red', bold=True)} {visible(detail)}", err=True, color=colour, styled=True)
    if remedy:
        echo(remedy, err=True)


def main() -> None:
    """Run the console script. An unexpected exception is printed as one line, or with HORAE_DEBUG=1 as a traceback."""
    try:
        guard_terminals()
        hide()
        cli.main(prog_name="horae")
    except Exception as error:
        if os.environ.get("HORAE_DEBUG"):
            raise
        print_error(f"{type(error).__name__}: {error}", "This is a bug in Horae. HORAE_DEBUG=1 shows the traceback.")
        sys.exit(UNEXPECTED)


if __name__ == "__main__":
    main()
