"""Cursors are opaque, and only issued ones are accepted."""

from base64 import urlsafe_b64encode
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


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (r'"a\u0000"', str),
        (r'["ok", "\u0000"]', tuple[str, str]),
        (f"{1 << 63}", int),
        (f'["{ID}", -{10**30}]', tuple[UUID, int]),
    ],
)
def test_a_position_that_no_database_can_hold_is_refused(place, kind):
    with pytest.raises(BadInput):
        read_cursor(urlsafe_b64encode(place.encode()).decode(), kind)


@pytest.mark.parametrize("limit", [0, -1, 1001, 10**20])
def test_the_size_of_a_page_is_bounded(limit):
    with pytest.raises(BadInput):
        check_limit(limit)
