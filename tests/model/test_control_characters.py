"""Control characters are refused in names and made visible in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.model.base.control_characters import refuse_controls, visible
from horae.model.definitions.reading.read import parse_definition

CONTROLS = [
    *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u061c", "\u200e", "\u200f", "\u2028", "\u2029",
    *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)),
]  # fmt: skip


@pytest.mark.parametrize("character", CONTROLS, ids=lambda c: f"U+{ord(c):04X}")
def test_control_characters_are_refused_in_names_and_escaped_in_texts(character: str):
    with pytest.raises(BadInput, match="control character U\\+"):
        refuse_controls(f"a{character}b", "worker")
    for colours in (True, False):
        shown = visible(f"a{character}b", colours=colours)
        assert (character in shown) == (character in "\t\n")


@pytest.mark.parametrize(
    ("text", "shown", "coloured"),
    [
        ("\x1b]0;PWNED\x07\x1b[2J", "\\x1b]0;PWNED\\x07\\x1b[2J", "\\x1b]0;PWNED\\x07\\x1b[2J"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b[38;5;1m\x1b[H", "\\x1b[38;5;1m\\x1b[H", "\x1b[38;5;1m\\x1b[H"),
        ("\x9b2J invoice\u202efdp.exe", "\\x9b2J invoice\\u202efdp.exe", "\\x9b2J invoice\\u202efdp.exe"),
        ("plain täxt 日本\tok\n", "plain täxt 日本\tok\n", "plain täxt 日本\tok\n"),
    ],
)
def test_colours_stay_where_they_are_allowed(text: str, shown: str, coloured: str):
    assert visible(text) == shown
    assert visible(text, colours=True) == coloured


@given(st.text(alphabet=st.sampled_from([*CONTROLS, "[", "m", "1", ";", "x"])))
def test_only_colour_sequences_stay(text: str):
    assert not set(visible(text)) & (set(CONTROLS) - set("\t\n"))
    left = visible(text, colours=True)
    while "\x1b[" in left:
        before, _, rest = left.partition("\x1b[")
        numbers, m, after = rest.partition("m")
        assert (m, set(numbers) - set("0123456789;:")) == ("m", set())
        left = before + after
    assert not set(left) & (set(CONTROLS) - set("\t\n"))


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\x00", "\x7f", "\u202e", "\u202a", "\u2066", "\u2069"])
@pytest.mark.parametrize(
    "job",
    [
        lambda text: {"description": text},
        lambda text: {"tags": {text: "x"}},
        lambda text: {"tags": {"x": text}},
        lambda text: {"queue": text},
        lambda text: {"name": text},
        lambda text: {"needs": [text]},
        lambda text: {"triggers": [{"name": text, "every": "1h"}]},
    ],
    ids=["description", "tag", "value of a tag", "queue", "name", "needs", "trigger"],
)
def test_definitions_contain_no_control_characters(job, character: str):
    with pytest.raises(BadInput):
        parse_definition(
            {"name": "a", "command": "true", **job(f"a{character}b")}, namespace_name="default", created_at=0
        )
