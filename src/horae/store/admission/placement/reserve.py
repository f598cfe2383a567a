"""Reservations: sessions that claim from one lane only, because an execution in it was passed over for too long."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.placement.reservation import LaneHead, Reservation
from horae.store.base.shelves import Columns
from horae.store.script import Fetch, ForEach, Insert, Script, Statement

ALL = Statement("reservations", "SELECT lane, session, since, until FROM reservations ORDER BY lane")
HEAD = Statement("lane_head", "SELECT queued_at FROM queued WHERE lane = $1 ORDER BY lane, rank, parcel, lo LIMIT 1")
DROP = Statement(
    "drop_reservations",
    "DELETE FROM reservations WHERE EXISTS (SELECT 1 FROM given WHERE reservations.lane = given.lane)",
)
GIVE_UP = Statement(
    "give_up_reservations",
    "UPDATE reservations SET until = given.until FROM given WHERE reservations.lane = given.lane",
)
COLUMNS: Columns = (("lane", "int"), ("session", "uuid"), ("since", "bigint"), ("until", "bigint"))


class LaneReservations(Struct, frozen=True):
    """All reservations, and the first slices of some lanes."""

    reservations: list[Reservation]
    heads: dict[int, LaneHead]  # the first slice by lane; empty lanes are left out


def read_reservations(lanes: Iterable[int]) -> Script[LaneReservations]:
    """Return all reservations, and the first slice of each of these lanes."""
    rows = yield Fetch(ALL)
    heads: dict[int, LaneHead] = {}
    for lane in lanes:
        first = yield Fetch(HEAD, (lane,))
        if first:
            heads[lane] = LaneHead(first[0][0])
    return LaneReservations([Reservation(lane=r[0], session=r[1], since=r[2], until=r[3]) for r in rows], heads)


def change(
    ended: Sequence[Reservation], given_up: Sequence[Reservation], until: Instant, new: Sequence[Reservation]
) -> Script[None]:
    """Write changes of reservations: delete `ended`, give up `given_up`, and add `new`.

    A reservation that is given up has no effect, but until `until` its lane gets no new one. A new reservation is not
    added if the lane already has one.
    """
    if ended:
        yield ForEach(DROP, (("lane", "int"),), [(one.lane,) for one in ended])
    if given_up:
        yield ForEach(GIVE_UP, (("lane", "int"), ("until", "bigint")), [(one.lane, until) for one in given_up])
    if new:
        rows = [(one.lane, one.session, one.since, one.until) for one in new]
        yield Insert("reservations", COLUMNS, rows, conflict="ON CONFLICT (lane) DO NOTHING")
