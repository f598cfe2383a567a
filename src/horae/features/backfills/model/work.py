"""The decisions of a backfill about its next fires: the choice of those to run, and the resulting ledger rows."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.features.backfills.model.plan import Place, Stretch
from horae.model.triggers.ledger import LedgerRow, cut, row_of


class Pick(Struct, frozen=True):
    """A fire to run, the stretch that it belongs to, and the ledger row that covers it, if any."""

    at: Instant
    stretch: Stretch
    row: LedgerRow | None

    @property
    def forced(self) -> bool:
        """True if the fire ran before and runs again; then its ledger row stays unchanged."""
        return self.row is not None and self.row.execution is not None


class FireChoice(Struct, frozen=True):
    """The fires to run now, the number of fires skipped because they ran before, and the last of all these fires."""

    picks: list[Pick]
    already_ran: int
    place: Place | None


def choose(
    fires: Sequence[tuple[Instant, Stretch]], rows: Mapping[UUID, Sequence[LedgerRow]], room: int, *, force: bool
) -> FireChoice:
    """Choose fires in order, at most `room` fires to run. `rows` are the ledger rows of each trigger.

    A fire ran before if its ledger row has an execution; then it is skipped, unless `force` is set.
    """
    picks: list[Pick] = []
    already = 0
    place: Place | None = None
    for at, stretch in fires:
        row = row_of(rows.get(stretch.version.id, ()), at)
        if row is not None and row.execution is not None and not force:
            already += 1
        elif len(picks) == room:
            break
        else:
            picks.append(Pick(at, stretch, row))
        place = (at, stretch.version.name)
    return FireChoice(picks, already, place)


def rewrite(
    picks: Sequence[Pick], executions: Sequence[UUID], backfill: UUID, now: Instant
) -> tuple[list[LedgerRow], list[LedgerRow]]:
    """Return the ledger rows to delete and to insert, so that each fire is still covered by exactly one row.

    `executions` are those of `picks`, in order. A fire that ran before keeps its row; only the backfill records its
    additional execution.
    """
    deleted: dict[tuple[UUID, Instant], tuple[LedgerRow, Stretch, list[Instant]]] = {}
    inserted: list[LedgerRow] = []
    for pick, execution in zip(picks, executions, strict=True):
        if pick.forced:
            continue
        if pick.row is not None:
            key = (pick.row.trigger, pick.row.last)
            deleted.setdefault(key, (pick.row, pick.stretch, []))[2].append(pick.at)
        inserted.append(_backfilled(pick, execution, backfill, now))
    for row, stretch, instants in deleted.values():
        inserted += cut(row, sorted(instants), stretch.version.trigger, stretch.version.rules)
    return [row for row, _, _ in deleted.values()], inserted


def _backfilled(pick: Pick, execution: UUID, backfill: UUID, now: Instant) -> LedgerRow:
    before = {
        "before": "before the trigger was made",
        "forgotten": "its outcome is no longer in the ledger",
        "known": "the ledger had no outcome for it",
    }[pick.stretch.known]
    if pick.row is not None:
        before = f"was {pick.row.disposition}: {pick.row.cause}"
    return LedgerRow(
        trigger=pick.stretch.version.id, first=pick.at, last=pick.at, disposition="backfilled",
        cause=f"backfill {backfill}; {before}", execution=execution, decided_at=now,
    )  # fmt: skip
