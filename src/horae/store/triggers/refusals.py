"""Refusals: a fire, an event or a backfill starts no execution, because its unique key is taken or a quota has no room.

No user waits for an answer that could have the error. Instead, the ledger records the refused fire with the cause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct, field, structs

from horae.env import Instant
from horae.errors import HoraeError, OverQuota
from horae.model.admission.quota import UNBOUNDED, QuotaBounds, QuotaRoom
from horae.model.definitions.job import Spec
from horae.model.executions.deduplication_keys import unique_key
from horae.model.executions.submission import NewExecution, Receipt
from horae.model.triggers.decisions.decide import Decision, LedgerRun, due_after
from horae.store.admission import quotas
from horae.store.executions.deduplication import deduplicate
from horae.store.script import ForEach, Script
from horae.store.triggers.delays import NO_DELAYS, Delays
from horae.store.triggers.dependencies.starts import Consequences, NewId
from horae.store.triggers.due import Trouble
from horae.store.triggers.fire_decisions import DecidedTimer

RAN = ("fired", "moved")  # dispositions that name an execution


class Refusal(Struct, frozen=True):
    """The reason why an execution is not created."""

    disposition: Literal["skipped-unique", "skipped-quota"]
    cause: str
    waits: OverQuota | None = None  # the exceeded quota, if the decision is to be made later; None: refused for good
    is_final: bool = False  # whether it would be refused at any time, because its unique key cannot be computed


class Room(Struct, frozen=True, kw_only=True):
    """Quotas that bound the executions that events start, and the delays that the ledger records.

    With `raise_if_full`, OverQuota is raised if an execution has to wait for room, so that nothing is decided now.
    """

    bounds: QuotaBounds = UNBOUNDED
    delays: Delays = NO_DELAYS
    raise_if_full: bool = False


ALL_ROOM = Room()


class Screening(Struct):
    """The result of `screen`: the executions that may not be created, and the rows of unique keys to write."""

    asked: list[NewExecution] = []  # all executions, those with a unique key completed by it
    accepted: set[int] = set()  # indexes in `asked`, also of executions that callers have refused afterwards
    refused: dict[int, Refusal] = {}  # index in `asked` -> its refusal
    deduplication: deduplicate.DeduplicationResult = field(default_factory=deduplicate.DeduplicationResult)
    delayed: list[Trouble] = []  # timers that are to be decided later, when the quota has room

    def changes(self, executions: Sequence[UUID]) -> Iterator[ForEach]:
        """Yield the changes to the rows of unique keys. `executions` has the ids of created executions, in order."""
        if not self.deduplication.assignments:
            return
        kept = sorted(self.accepted - self.refused.keys())
        made = dict(zip(kept, executions, strict=True))
        yield from self.deduplication.changes(self.asked, lambda i: made[i])

    @property
    def first(self) -> Refusal | None:
        """The refusal of the first refused execution; None when none is refused."""
        return self.refused[min(self.refused)] if self.refused else None

    def refuse_rest(self) -> int:
        """Refuse also all executions after the first refused one, and return the number of executions before it."""
        first = min(self.refused)
        for i in range(first, len(self.asked)):
            self.refused.setdefault(i, self.refused[first])
            self.deduplication.refuse(i)
        return first

    def write_keys(self, executions: Sequence[UUID]) -> Script[None]:
        """Write the changes to the rows of unique keys, see `changes`."""
        for change in self.changes(executions):
            if change.rows:
                yield change

    def settle(self, new_id: NewId, now: Instant) -> Script[None]:
        """End the executions that were replaced, because a newer execution took over their unique key."""
        if self.deduplication.has_changes:
            yield from deduplicate.settle(self.deduplication, self.asked, new_id, now, Consequences())


def screen(
    wanted: Sequence[NewExecution],
    specs: Sequence[Spec],
    bounds: QuotaBounds,
    new_id: NewId,
    now: Instant,
    *,
    replaces: bool = True,
) -> Script[Screening]:
    """Decide for each execution, in order, whether its unique key is free and the quotas have room for it.

    `specs` has the definition of the job of each execution. Without `replaces`, no execution replaces an earlier one
    with the same key, even if its job has the rule `keep: latest`.
    """
    screener = yield from prepare_screening(wanted, specs, bounds, new_id, now, replaces=replaces)
    for i in range(len(wanted)):
        screener.take(i)
    return screener.result


def prepare_screening(
    wanted: Sequence[NewExecution],
    specs: Sequence[Spec],
    bounds: QuotaBounds,
    new_id: NewId,
    now: Instant,
    *,
    replaces: bool = True,
) -> Script["Screener"]:
    """Lock the unique keys and the quotas of executions, and return the object that decides, see `screen`."""
    screening = Screening(list(wanted))
    for i, spec in enumerate(specs):
        if spec.unique is not None:
            try:
                rule = spec.unique if replaces else structs.replace(spec.unique, keep="first")
                screening.asked[i] = structs.replace(wanted[i], deduplication=unique_key(spec, wanted[i].item, rule))
            except HoraeError as error:
                screening.refused[i] = Refusal("skipped-unique", error.detail, is_final=True)
    keys = yield from deduplicate.lock_keys(screening.asked, new_id, now)
    screening.deduplication = keys.met
    room = yield from quotas.lock_room(bounds, [(e.envelope.namespace, e.envelope.queue) for e in wanted], now)
    return Screener(screening, keys, room)


class Screener:
    """Decides about the executions of a screening, one after the other."""

    def __init__(self, result: Screening, keys: deduplicate.Decider, room: QuotaRoom) -> None:
        self.result, self._keys, self._room = result, keys, room

    def take(self, i: int, instead_of: int | None = None) -> set[int]:
        """Decide about an execution, and return the earlier ones that are not created because of it.

        These are the execution whose unique key it takes over, and, unless it is refused, the execution `instead_of`.
        """
        met, refused, one = self._keys.met, self.result.refused, self.result.asked[i]
        if i in refused:
            return set()
        owners = [met.assignments.get(deduplicate.row_key(one, key)) for key in one.deduplication]
        self._keys.decide(i, one)
        if i in met.same or i in met.answers:
            refused[i] = _key_taken(met.answers.get(i))
            return set()
        displaced = {j for j in (owner.by for owner in owners if owner) if isinstance(j, int) and met.same.get(j) == i}
        refused |= dict.fromkeys(displaced, _key_taken(None))
        if instead_of is not None:
            displaced.add(instead_of)
        has_room = self._place(i) in map(self._place, displaced)
        full = None if has_room else self._room.take(*self._place(i), 1)
        if full is not None:
            waits = full if self._room.bounds.lets_wait(one.envelope.namespace, full) else None
            refused[i] = Refusal("skipped-quota", full.detail, waits)
            met.refuse(i)
            return displaced & refused.keys()
        if instead_of is not None:
            met.refuse(instead_of)
        self.result.accepted.difference_update(displaced)
        self.result.accepted.add(i)
        return displaced

    def _place(self, i: int) -> tuple[int, int]:
        envelope = self.result.asked[i].envelope
        return envelope.namespace, envelope.queue


def _key_taken(answer: Receipt | None) -> Refusal:
    holder = "another of the same instant" if answer is None else f"execution {answer.execution_id}"
    return Refusal("skipped-unique", f"its key belonged to {holder}")


# Fires of timers


def screen_fires(
    decided: list[DecidedTimer], bounds: QuotaBounds, new_id: NewId, now: Instant
) -> Script[tuple[list[DecidedTimer], Screening]]:
    """Remove refused executions from the decisions about timers, and record the refusals in their ledger rows.

    Timers that have to wait for room are left out; they are in `delayed` of the screening.
    """
    if not bounds and all(d.due.target.spec.unique is None for d in decided):
        return decided, Screening()
    wanted = [one for d in decided for one in d.wanted]
    specs = [d.due.target.spec for d in decided for _ in d.wanted]
    screening = yield from screen(wanted, specs, bounds, new_id, now)
    if not screening.refused:
        return decided, screening
    return list(_without(_in_time(decided, screening), screening.refused)), screening


def _in_time(decided: Sequence[DecidedTimer], found: Screening) -> Iterator[tuple[int, DecidedTimer]]:
    """Yield decided timers, each with the index of its first execution among all executions.

    If one execution of a timer has to wait for room, all fires of this timer are decided later: it is not yielded.
    """
    place = 0
    for d in decided:
        indexes = range(place, place + len(d.wanted))
        place += len(d.wanted)
        waits = next((found.refused[i] for i in indexes if i in found.refused and found.refused[i].waits), None)
        if waits is None:
            yield indexes.start, d
            continue
        found.delayed.append(Trouble(d.due.timer.id, d.due.target.job, waits.cause))
        for i in indexes:
            found.refused[i] = waits
            found.deduplication.refuse(i)


def _without(decided: Iterable[tuple[int, DecidedTimer]], refused: Mapping[int, Refusal]) -> Iterator[DecidedTimer]:
    for place, d in decided:
        refusals = {k: refused[place + k] for k in range(len(d.wanted)) if place + k in refused}
        if not refusals:
            yield d
            continue
        wanted = [one for k, one in enumerate(d.wanted) if k not in refusals]
        yield DecidedTimer(d.due, _refused(d, refusals), wanted)


def _refused(d: DecidedTimer, refusals: Mapping[int, Refusal]) -> Decision:
    """Return a timer's decision without refused fires; they do not count towards the trigger's limit of fires."""
    decision, timer, ran = d.decision, d.due.timer, iter(range(len(d.wanted)))
    ledger = []
    for run in decision.ledger:
        refusal = refusals.get(next(ran)) if run.disposition in RAN else None
        ledger.append(run if refusal is None else LedgerRun(run.first, run.last, refusal.disposition, refusal.cause))
    following = decision.next_fire_at
    if following is None and timer.rules.max_fires is not None:
        following = due_after(timer.trigger, timer.rules, decision.decided_through)
    fires = tuple(fire for k, fire in enumerate(decision.fires) if k not in refusals)
    return structs.replace(decision, fires=fires, ledger=tuple(ledger), next_fire_at=following)
