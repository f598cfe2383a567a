"""The `hint` of a queued execution: a text that says why no worker takes it, and how to change that."""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec import Struct

from horae.model.admission.placement.placement import (
    COUNTS_COSTS,
    Requirements,
    amounts,
    fits,
    missing_from,
    read_needs,
    without_preferences,
)
from horae.model.definitions.job import STEADY
from horae.model.fleet.suspects import is_suspect
from horae.model.tenancy.secret_refs import TAKES_SECRETS

_FUNCTION, _KIND = "function:", "kind:"
WORKFLOW = "kind:workflow"  # a need that only workflows have, which servers start themselves


class Offer(Struct, frozen=True):
    """A live worker's queues and capabilities."""

    queues: frozenset[str]
    capabilities: frozenset[str]
    session: UUID | None = None


def why_queued(queue: str, needs: Collection[str], offers: Sequence[Offer], losses: int = 0) -> str | None:
    """Explain which capability no live worker has, and how to start a worker that has it.

    If a live worker can take the execution, explain why a suspect waits, or return None.
    """
    if WORKFLOW in needs:
        return None
    serving = [offer for offer in offers if queue in offer.queues]
    terms = read_needs(without_preferences(frozenset(needs)))
    if any(fits(terms, offer.capabilities) for offer in serving):
        return _how_it_goes_on(losses)
    option = "" if queue == "default" else f" --queue {queue}"
    if not serving:
        where = "There is no live worker" if not offers else f'No live worker serves the queue "{queue}"'
        return f"{where}; start one with `horae worker{option}`."
    lacking = sorted(need for need in terms.must if not any(need in offer.capabilities for offer in serving))
    if lacking:
        return _how_to_offer(lacking[0], option)
    short = missing_from(terms, [offer.capabilities for offer in serving])
    if short:
        return f"No live worker has {short[0]} in total; start a larger one with `horae worker{option}{_size(terms)}`."
    asked = sorted(map(_in_words, terms.must)) + amounts(terms.cost)
    return f"No single live worker offers all of {', '.join(asked)}."


def _size(terms: Requirements) -> str:
    resources = "".join(f" --resource {name}={amount}" for name, amount in terms.cost.resources)
    return f" --slots {terms.cost.slots}{resources}"


def _how_it_goes_on(losses: int) -> str | None:
    if is_suspect(losses):
        return f"It was lost with its worker {losses} times: a worker takes few such executions at once."
    return None


def _in_words(need: str) -> str:
    if need == STEADY:
        return "a worker that is not spot"
    if need == COUNTS_COSTS:
        return "the newer protocol"
    if need == TAKES_SECRETS:
        return "taking secrets"
    return f"the function {need.removeprefix(_FUNCTION)}" if need.startswith(_FUNCTION) else need.removeprefix(_KIND)


def _how_to_offer(need: str, option: str) -> str:
    if need == STEADY:
        return f"All live workers are spot workers, which its job excludes; start another with `horae worker{option}`."
    if need == COUNTS_COSTS:
        return "No live worker supports executions that take several slots or resources; upgrade the workers."
    if need == TAKES_SECRETS:
        return f"No live worker takes secrets, which this job refers to; start one with `horae worker{option}`."
    if need.startswith(_FUNCTION):
        name = need.removeprefix(_FUNCTION)
        return f"No live worker knows the function {name}; start one with `horae worker{option} --app MODULE:APP`."
    if need.startswith(_KIND):
        return f"No live worker runs {need.removeprefix(_KIND)} jobs; start one with `horae worker{option}`."
    return f"No live worker carries the label {need}; start one with `horae worker{option} --label {need}`."
