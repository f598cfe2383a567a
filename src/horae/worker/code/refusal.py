"""Reduces an exchange that a server refuses as invalid, step by step, until only the faulty entry is left.

No other entry is lost, because entries that are removed from the exchange are sent later. The entries of an execution
keep their order: its log lines, then its outcome.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import structs

from horae.model.fleet.protocol import LogLines, Outcome, ReportedFailure
from horae.worker.exchange.outbox import ExchangeLoad

REFUSED = "WARNING the server refused a line"
MAX_REASON = 300  # characters of the server's reason
T = TypeVar("T")


def split_load(load: ExchangeLoad, reason: str, index: int | None = None) -> tuple[ExchangeLoad, ExchangeLoad]:
    """Divide the load of a refused exchange into the part to send now and the part to send later.

    If the load has only one entry, that entry is faulty: it is replaced by a note of its refusal, or left out. `index`
    is the position of the faulty outcome, if the server names it. Then all other entries can be sent now.
    """
    if index is not None and 0 <= index < len(load.outcomes):
        keep, back = halve_outcomes(load.outcomes[index : index + 1], reason)
        outcomes = [*load.outcomes[:index], *keep, *load.outcomes[index + 1 :]]
        return structs.replace(load, outcomes=outcomes), ExchangeLoad(outcomes=back)
    if load.outcomes and (load.logs or load.progress or load.started):  # the fault may be in the other entries
        return structs.replace(load, outcomes=[]), ExchangeLoad(outcomes=load.outcomes)
    if load.outcomes:
        keep, back = halve_outcomes(load.outcomes, reason)
        return ExchangeLoad(outcomes=keep), ExchangeLoad(outcomes=back)
    if load.logs and (load.progress or load.started):
        return ExchangeLoad(logs=load.logs), ExchangeLoad(started=load.started, progress=load.progress)
    if any(log.open is not None for log in load.logs):  # shown again later, if still unfinished
        return ExchangeLoad(logs=[structs.replace(log, open=None) for log in load.logs if log.lines]), ExchangeLoad()
    if load.logs:
        logs, later = halve_logs(load.logs, reason)
        return ExchangeLoad(logs=logs), ExchangeLoad(logs=later)
    started, started_later = _in_two(load.started)
    progress, progress_later = _in_two(load.progress) if not load.started else ([], load.progress)
    return ExchangeLoad(started=started, progress=progress), ExchangeLoad(
        started=started_later, progress=progress_later
    )


def _in_two(entries: Sequence[T]) -> tuple[list[T], list[T]]:
    """Split entries into two halves. A single entry is dropped, because it is not important enough for a note."""
    middle = len(entries) // 2
    return list(entries[:middle]), list(entries[middle:]) if len(entries) > 1 else []


def halve_logs(logs: list[LogLines], reason: str) -> tuple[list[LogLines], list[LogLines]]:
    """Split log lines into two halves: by attempts, or by lines if they are of one attempt.

    A single line is replaced by a line with the same number and the reason of the refusal.
    """
    if len(logs) != 1:
        middle = len(logs) // 2
        return logs[:middle], logs[middle:]
    (log,) = logs
    middle = len(log.lines) // 2
    if middle:
        rest = structs.replace(log, seq=log.seq + middle, lines=log.lines[middle:], left_out=None)
        return [structs.replace(log, lines=log.lines[:middle])], [rest]
    ((at, _, text),) = log.lines
    if text.startswith(REFUSED):
        return [], []
    message = f"{REFUSED} of {len(text)} characters: {reason[:MAX_REASON]}"
    return [structs.replace(log, lines=[(at, "log", message)])], []


def halve_outcomes(outcomes: list[Outcome], reason: str) -> tuple[list[Outcome], list[Outcome]]:
    """Split outcomes into two halves, or a single outcome by its items.

    The outcome of a single item is replaced by a failure with the reason of the refusal.
    """
    if len(outcomes) != 1:
        middle = len(outcomes) // 2
        return outcomes[:middle], outcomes[middle:]
    outcome = outcomes[0]
    if outcome.hi - outcome.lo > 1:
        middle = (outcome.lo + outcome.hi) // 2
        return [_part(outcome, outcome.lo, middle)], [_part(outcome, middle, outcome.hi)]
    error = ReportedFailure(
        type="OutcomeRefused", message=f"the server refused this outcome: {reason}"[:2000], permanent=True
    )
    return [structs.replace(outcome, outcome="failed", results=[], error=error, wake_at=None)], []


def _part(outcome: Outcome, lo: int, hi: int) -> Outcome:
    cut = slice(lo - outcome.lo, hi - outcome.lo)
    times = {"started_at": outcome.started_at[cut], "ended_at": outcome.ended_at[cut]}
    return structs.replace(outcome, lo=lo, hi=hi, results=outcome.results[cut], **times)
