"""Cursors are opaque, and only issued ones are accepted."""

from uuid import UUID

import pytest

from horae.errors import BadInput
from horae.model.base.cursor import check_limit, make_cursor, read_cursor

ID = UUID("0195c1d2-0000-7000-8000-000000000000")


def test_a_cursor_encodes_its_position():
    assert read_cursor(make_cursor((ID, 7)), tuple[UUID, int]) == (ID, 7)
    assert make_cursor((ID, 7)).isascii()


@pytest.mark.parametrize("text", ["", "!", "e30", "\u00e9", "x" * 1000, make_cursor(["a", "b"]), make_cursor((ID,))])
def test_anything_else_is_refused(text):
    with pytest.raises(BadInput) as refused:
        read_cursor(text, tuple[UUID, int])
    assert refused.value.fields["field"] == "cursor"


@pytest.mark.parametrize("limit", [0, -1, 1001, 10**20])
def test_the_size_of_a_page_is_bounded(limit):
    with pytest.raises(BadInput):
        check_limit(limit)
