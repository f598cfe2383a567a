"""The keys of executions that are submitted together."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.admission.execution_keys import common_keys, envelope_keys
from horae.model.admission.limits import KeyLimit
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask

JOB = UUID(int=1)
ITEMS = (
    b'{"who":"a"}',
    b'{"x":[{}],"who":"a"}',
    b'{"who":"\\u0061"}',
    b'{"who":"b"}',
    b'{"who":7}',
    b'{"who":"7"}',
    b"{}",
)


def each_alone(spec: Spec, items: list[bytes]) -> set[str | None] | None:
    """Return the keys of items one by one; None when an item has none."""
    try:
        return {envelope_keys(None, JOB, spec, item, {}) for item in items}
    except BadInput:
        return None


@given(
    st.sampled_from(["${params.who}", "${params.who + '!'}", "all"]),
    st.sampled_from(["", "${params.who}", "${params.other}"]),
    st.one_of(st.lists(st.sampled_from(ITEMS), min_size=1), st.sampled_from(ITEMS).map(lambda item: [item] * 3)),
)
def test_common_keys_equal_the_keys_of_each_item(key, sequence, items):
    limits = (KeyLimit(key=key, concurrency=2),)
    spec = Spec(name="report", task=CommandTask(argv=("true",)), limits=limits, sequence=sequence, params={"other": 1})

    alone = each_alone(spec, items)

    try:
        together = common_keys(None, JOB, spec, items, {})
    except BadInput:
        assert alone is None
    else:
        assert together == (alone.pop() if alone is not None and len(alone) == 1 else None)


def test_an_unfilled_key_is_named_by_its_position_in_limits():
    limits = (KeyLimit(key="all", concurrency=2), KeyLimit(key="${params.who}", concurrency=2))
    for own in (None, 5):
        spec = Spec(name="report", task=CommandTask(argv=("true",)), limits=limits, concurrency=own)
        with pytest.raises(BadInput, match=r"limits\[1\]"):
            envelope_keys(None, JOB, spec, b"{}", {})
