"""W3C's trace context, and the ids that are derived from executions."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.base.trace import TraceContext, checked_state, checked_trace, read_trace, root_of, span_of, trace_id_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SPAN}-01"


def test_a_header_reads_back():
    assert read_trace(HEADER) == TraceContext(TRACE, SPAN, True)
    assert read_trace(f"00-{TRACE}-{SPAN}-00") == TraceContext(TRACE, SPAN, False)
    assert checked_trace(HEADER) == HEADER
    assert trace_id_of(HEADER) == TRACE


def test_a_later_version_may_say_more():
    assert checked_trace(f"01-{TRACE}-{SPAN}-03-what-is-to-come") == HEADER


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        HEADER.upper(),
        f"{HEADER}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"01-{TRACE}-{SPAN}-01-{'x' * 300}",
    ],
)
def test_an_invalid_header_is_no_trace(header: str | None):
    assert checked_trace(header) is None
    assert trace_id_of(header) is None


@given(st.uuids(), st.uuids(), st.integers(1, 9))
def test_ids_follow_from_executions_and_differ_between_them(one: UUID, other: UUID, attempt: int):
    root = root_of(one)
    assert read_trace(root.header) == root == root_of(one)
    assert (root_of(other) == root) == (one == other)
    spans = {span_of(what, one, n) for what in ("queue", "attempt") for n in (attempt, attempt + 1)}
    assert len(spans | {root.span_id}) == 5


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("vendor=a", "vendor=a"),
        (" one=1 ,, t@two=2 ", "one=1,t@two=2"),
        ("a=b=c", None),
        ("Upper=1", None),
        ("one=1,one=2", None),
        ("one=ü", None),
        ("one=1\r\nx: y", None),
        ("one", None),
        ("", None),
        (None, None),
        (",".join(f"k{i}=v" for i in range(33)), None),
        ("one=1," + "long=" + "x" * 200 + ",two=" + "y" * 120 + "," + ",".join(f"k{i}=" + "z" * 100 for i in range(4)),
         "one=1,two=" + "y" * 120 + "," + ",".join(f"k{i}=" + "z" * 100 for i in range(3))),
        ("big=" + "x" * 600, None),
    ],
)  # fmt: skip
def test_a_valid_state_is_kept(given: str | None, kept: str | None):
    assert checked_state(given) == kept
