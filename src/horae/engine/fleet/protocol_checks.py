"""Checks of workers' messages beyond the types of the protocol."""

from collections import Counter

from horae.errors import BadInput, OutcomeRefused, ProtocolMismatch
from horae.model.base.control_characters import refuse_controls
from horae.model.documents.nesting import MAX_NESTING, is_too_deep
from horae.model.fleet.protocol import (
    FIRST_PROTOCOL,
    MAX_ERROR_NAME,
    MAX_MESSAGE,
    MAX_RESULT,
    MAX_TRACEBACK,
    MOST_ERROR_NAMES,
    PROTOCOL,
    Exchange,
    Failure,
    Outcome,
    Register,
)

MOST_LINES = 100_000_000  # log lines of an attempt
MOST_PIECES = 100  # pieces of one attempt's log in one exchange: each is a statement


def check_presence(presence: Register) -> None:
    """Refuse a registration with another protocol, or with control characters in a text."""
    if not max(FIRST_PROTOCOL, PROTOCOL - 1) <= presence.protocol <= PROTOCOL:
        raise ProtocolMismatch(
            f"The worker speaks protocol {presence.protocol}, this server {PROTOCOL}.",
            "Upgrade the older of the two; a server also accepts the version before its own, if there is one.",
        )
    for field, texts in (
        ("worker", [presence.worker]),
        ("host", [presence.host]),
        ("version", [presence.version]),
        ("labels", [*presence.labels, *presence.labels.values()]),
        ("queues", [*presence.queues, *presence.weights]),
        ("resources", presence.resources),
        ("kinds", presence.kinds),
        ("functions", [function.name for function in presence.functions]),
    ):
        for text in texts:
            refuse_controls(text, field)


def _check_error(error: Failure) -> None:
    """Refuse an error that is too large for the pages that show it."""
    for field, text, most in (
        ("type", error.type, MAX_ERROR_NAME),
        ("message", error.message, MAX_MESSAGE),
        ("traceback", error.traceback, MAX_TRACEBACK),
        ("names", max(error.names, key=len, default=""), MAX_ERROR_NAME),
    ):
        if len(text) > most:
            detail = f"The {field} of its error has {len(text)} characters."
            raise BadInput(detail, f"{most} are allowed: shorten it.", field=f"error.{field}")
    if len(error.names) > MOST_ERROR_NAMES:
        detail = f"Its error has {len(error.names)} names."
        raise BadInput(detail, f"{MOST_ERROR_NAMES} are allowed.", field="error.names")


def check_exchange(up: Exchange) -> None:
    """Refuse an inconsistent exchange, and name the faulty outcome."""
    if len(up.logs) > MOST_PIECES and max(Counter((log.parcel, log.item) for log in up.logs).values()) > MOST_PIECES:
        remedy = "Send consecutive lines of an attempt together."
        raise BadInput(f"There are more than {MOST_PIECES} pieces of one log.", remedy, field="logs")
    for log in up.logs:
        if log.seq + len(log.lines) > MOST_LINES:
            raise BadInput(f"Log lines from {log.seq} are too many.", f"{MOST_LINES} are allowed.", field="seq")
    for i, outcome in enumerate(up.outcomes):
        try:
            _check_outcome(outcome)
        except BadInput as error:
            fields = {"field": f"outcomes[{i}].{error.fields['field']}", "index": i}
            raise OutcomeRefused(f"Outcome {i}: {error.detail}", error.remedy, **fields) from None


def _check_outcome(outcome: Outcome) -> None:
    if outcome.error is not None:
        _check_error(outcome.error)
    size, items = outcome.hi - outcome.lo, f"It names items {outcome.lo} to {outcome.hi}"
    if size < 1:
        raise BadInput(f"{items}, an empty range.", "Send an `hi` above `lo`.", field="hi")
    if outcome.results and len(outcome.results) != size:
        remedy = "Send one result per item, or none when all are null."
        raise BadInput(f"{items} with {len(outcome.results)} results.", remedy, field="results")
    for result in map(bytes, outcome.results):
        if len(result) <= MAX_RESULT and is_too_deep(result):
            remedy = f"Flatten it: {MAX_NESTING} levels are allowed."
            raise BadInput("A result is nested too deeply.", remedy, field="results")
    for name, times in (("startedAt", outcome.started_at), ("endedAt", outcome.ended_at)):
        if len(times) > 1 and len(times) != size:
            remedy = "Send one time per item, one for all, or none."
            raise BadInput(f"{items} with {len(times)} times.", remedy, field=name)
