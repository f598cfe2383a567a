"""`python -m tools.peers [PAGE]`: measure, write the page if it is named, and print a JSON line per figure."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.kit.results import machine
from bench.pages.document import commit_of_tree
from horae.env import system_env
from horae.model.base.instant import format_instant
from horae.version import __version__
from tools.peers.peer import PeerError
from tools.peers.queues import QUEUES, queues
from tools.peers.report import Circumstances, lines, page
from tools.peers.rounds import Subject, horae_subjects, peer_subjects, rounds
from tools.peers.services import hosted, redis_version

REPEATS = 3
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report; the exit code tells whether all requested figures could be measured."""
    options = _options(arguments)
    for number in ENDING:
        signal.signal(number, _end)
    try:
        subjects, around = measure(options)
    except PeerError as error:
        _tell(str(error))
        return 1
    except KeyboardInterrupt:
        _tell("Interrupted: all processes are ended, no page is written.")
        return 130
    for line in lines(subjects, around):
        print(msgspec.json.encode(line).decode())
    if options.page:
        options.page.write_text(page(subjects, around))
    return 1 if any(subject.failure for subject in subjects) else 0


def _end(*_: object) -> None:
    """End in good order, once: a terminal and `make` both send the signal."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def measure(options: argparse.Namespace) -> tuple[list[Subject], Circumstances]:
    """Install the peers, then measure in turn."""
    at, commit, found = format_instant(system_env().now()), commit_of_tree(), machine()
    peers = installed_peers(options.only, options.without, options.share)
    subjects = [*horae_subjects(f"horae {__version__}, Python {found['python']}", options.share), *peers]
    redis = redis_version()
    with hosted() as host:
        services = f"{redis}, PostgreSQL {host.postgres.execute('SHOW server_version').strip()}"
        for number, subject in rounds(subjects, options.repeats, host):
            _tell(f"round {number} of {options.repeats}: {subject.name}")
    for subject in subjects:
        if subject.failure:
            _tell(f"{subject.name}: {subject.failure}")
    return subjects, Circumstances(
        command=_command(options), at=at, commit=commit, machine=found, services=services, share=options.share
    )


def installed_peers(only: Sequence[str], without: Sequence[str], share: float = 1.0) -> list[Subject]:
    """Install the selected peers; without any peer there is no comparison."""
    subjects = []
    for peer in queues(only, without):
        _tell(f"installing {peer.title}")
        subjects += peer_subjects(peer, share)
    if not any(not subject.failure for subject in subjects):
        reasons = "\n".join(dict.fromkeys(subject.failure for subject in subjects))
        raise PeerError(f"There is no peer to compare Horae with.\n{reasons}".strip())
    return subjects


def _command(options: argparse.Namespace) -> str:
    flags = [f"--only {name}" for name in options.only] + [f"--without {name}" for name in options.without]
    flags += [f"--repeats {options.repeats}"] if options.repeats != REPEATS else []
    flags += [f"--share {options.share:g}"] if options.share != 1 else []
    return f'make bench-peers PEERS_FLAGS="{" ".join(flags)}"' if flags else "make bench-peers"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-peers", description="Horae and its peers side by side.")
    parser.add_argument("page", nargs="?", type=Path, help="the file for the page")
    parser.add_argument("--only", action="append", default=[], choices=QUEUES, help="measure this peer, and no other")
    parser.add_argument("--without", action="append", default=[], choices=QUEUES, help="omit this peer")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="rounds; the median counts")
    parser.add_argument(
        "--share", type=float, default=1.0, help="the share of the jobs of a run; less is a quick check"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
