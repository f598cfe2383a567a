"""Even spreading: all items find a worker, and no worker gets more than the common level."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from horae.model.admission.placement.spread import SpreadWorker, bounds


@st.composite
def workers(draw):
    found = []
    for n in range(draw(st.integers(0, 6))):
        own, others = draw(st.integers(0, 8)), draw(st.integers(0, 4))
        slots = max(1, own + others) + draw(st.integers(0, 10))
        found.append(SpreadWorker(UUID(int=n + 1), own, own + others, slots))
    return found


@given(st.integers(1, 40), workers())
def test_no_worker_gets_more_than_its_free_slots(count, holders):
    by_id = {holder.session: holder for holder in holders}

    for session, most in bounds(count, holders).items():
        assert 0 < most <= by_id[session].slots - by_id[session].running


@given(st.integers(1, 40), workers())
def test_no_worker_exceeds_an_even_share_by_more_than_one(count, holders):
    room = {holder.session: holder.own for holder in holders if holder.running < holder.slots}
    got = bounds(count, holders)
    if not got:
        return
    level = max(room[session] + most for session, most in got.items())

    assert all(room[session] >= level for session in room if session not in got), "who has fewer gets some"
    assert sum(max(0, level - 1 - own) for own in room.values()) < count, "a lower level would not do"


def test_all_items_are_distributed_if_there_are_slots():
    four = [SpreadWorker(UUID(int=n), own, own, 50) for n, own in enumerate((0, 0, 10, 40))]

    assert bounds(100, four[:2]) == {UUID(int=0): 50, UUID(int=1): 50}
    assert bounds(20, four) == {UUID(int=0): 10, UUID(int=1): 10}
    assert bounds(110, four) == {UUID(int=0): 40, UUID(int=1): 40, UUID(int=2): 30}
    assert bounds(4, [SpreadWorker(UUID(int=1), 3, 4, 4), SpreadWorker(UUID(int=2), 9, 9, 12)]) == {UUID(int=2): 3}
