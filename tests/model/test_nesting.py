"""The depth of nested lists and objects in JSON."""

import tracemalloc

import msgspec
import pytest

from horae.model.documents.nesting import MAX_NESTING, is_too_deep

MIB = 1024 * 1024


@pytest.mark.parametrize("beside", ["", "[", '"[', "\\[", "\\" + '"[' * MAX_NESTING, "\n[" * MAX_NESTING])
def test_brackets_within_texts_do_not_count(beside):
    for levels, too_deep in ((MAX_NESTING - 1, False), (MAX_NESTING, True)):
        nested: object = beside
        for _ in range(levels):
            nested = [nested]
        assert is_too_deep(msgspec.json.encode([beside, nested])) is too_deep


@pytest.mark.parametrize("text", [b"a" * MIB, b'\\"' * (MIB // 2)], ids=["plain", "escaped"])
def test_a_long_text_takes_little_memory(text):
    document = b'["%b",%b]' % (text, b",".join([b"[]"] * MAX_NESTING))
    tracemalloc.start()
    assert not is_too_deep(document)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MIB
