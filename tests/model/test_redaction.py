"""Values are covered in every form, wherever a text is cut."""

import base64
import json
import random
import subprocess
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model.base.redaction import MASK, Redactor, forms_of, merge_spans, spans_of

CANARY = 'Zq7!"/päss w0rd\\n{x}'
_TEXT = st.text('abAB01/+ \n"\\é', max_size=12)
_VALUE = st.text('abAB01/+ \n"\\é', min_size=4, max_size=10).filter(lambda value: len(value.strip()) >= 4)


def base64_inside(value: str) -> list[str]:
    """Return the part of the base64 text that identifies `value` at this offset, computed independently."""
    found = []
    for before in range(3):
        for after in (b"", b"\xff\xff\xff"):
            whole = base64.b64encode(b"\0" * before + value.encode() + after).decode()
            other = base64.b64encode(b"\xff" * before + value.encode() + b"\0\0\0").decode()
            same = [a == b for a, b in zip(whole, other, strict=False)]
            first = same.index(True)
            last = first
            while last < len(same) and same[last]:
                last += 1
            found.append(whole[first:last])
    return found


@pytest.mark.parametrize(
    "written",
    [
        CANARY,
        json.dumps({"k": [CANARY]}),
        json.dumps({"k": CANARY}, ensure_ascii=False),
        json.dumps(json.dumps({"k": CANARY})),
        msgspec.json.encode({"k": CANARY}).decode(),
        repr(CANARY),
        repr({"k": CANARY.encode()}),
        quote(CANARY),
        quote(CANARY, safe=""),
        quote(CANARY, safe="").lower().replace("zq7", "Zq7"),
        urlencode({"k": CANARY}),
        base64.b64encode(CANARY.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + CANARY.encode()).decode(),
        base64.b64encode(b"ab" + CANARY.encode() + b"tail").decode(),
        CANARY.encode().hex(),
        CANARY.encode().hex().upper(),
        CANARY.replace("&", "&amp;").replace('"', "&quot;"),
    ],
)
def test_every_form_is_covered_and_the_rest_stays(written):
    shown = Redactor([CANARY]).text(f"before {written} after")

    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert MASK in shown
    assert not any(form in shown for form in forms_of(CANARY))


@pytest.mark.parametrize("value", ["it's me", 'say "so"', "both ' and \"", "back\\slash'"])
def test_a_value_is_found_inside_any_quotes(value):
    for text in (f"a '{value}", f'a "{value}', f"a 'b\" {value}"):
        assert Redactor([value]).text(repr(text)).count(MASK) == 1
        assert Redactor([value]).text(repr(text.encode())).count(MASK) == 1


def test_base64_of_a_long_value_is_covered_also_in_lines():
    value = "".join(random.Random(7).choices("abcdefghijklmnop", k=300))
    printed = subprocess.run(["base64"], input=value.encode(), capture_output=True, check=True).stdout.decode()

    shown = Redactor([value]).text(printed)

    assert len(printed.splitlines()) > 3
    assert all(len(line.strip("*\n=")) <= 2 for line in shown.splitlines())


def test_the_lines_of_a_key_are_covered_one_by_one():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END KEY-----\n"
    assert Redactor([key]).text("  kqhkiG9w0BAQ==\n") == f"  {MASK}\n"


def test_numbers_are_covered_and_clean_results_stay_unchanged():
    redactor = Redactor(["12345678"])
    plain = b'{"a":[1,2.50,"x",null,true],"b":1e3}'

    assert redactor.json(plain) is plain
    assert msgspec.json.decode(redactor.json(b'{"pin":12345678,"12345678":{"k":"a12345678b"}}')) == {
        "pin": MASK,
        MASK: {"k": f"a{MASK}b"},
    }
    deep = b"[" * 900 + b'"12345678"' + b"]" * 900
    assert b"12345678" not in redactor.json(deep)


@pytest.mark.parametrize("written", [r"sword\u0066ish", r"\u0073wordfish", r"a\/b swordfish"])
def test_a_value_is_found_in_json_however_it_is_escaped(written):
    assert "swordfish" not in msgspec.json.decode(Redactor(["swordfish"]).json(b'["%b"]' % written.encode()))[0]


def test_a_cut_text_shows_no_part_of_a_value():
    redactor = Redactor(["swordfish"])
    assert redactor.cut("the word is sword") == f"the word is {MASK}"
    assert redactor.cut("the word is swordfish!") == f"the word is {MASK}!"
    assert redactor.cut("fish, it is", at_start=True, at_end=False) == f"{MASK}, it is"


def covering(text: str, values: list[str]) -> str:
    """Return the visible characters, by a simple but slow definition."""
    hidden = set()
    for value in values:
        for form in forms_of(value):
            for at in range(len(text)):
                if text.startswith(form, at):
                    hidden |= set(range(at, at + len(form)))
    shown, was_hidden = "", False
    for at, char in enumerate(text):
        if at not in hidden:
            shown += char
        elif not was_hidden:
            shown += MASK
        was_hidden = at in hidden
    return shown


@given(values=st.lists(_VALUE, min_size=1, max_size=3), parts=st.lists(_TEXT, max_size=4), data=st.data())
def test_a_stream_covers_the_same_however_it_is_cut(values, parts, data):
    text = "".join(part + data.draw(st.sampled_from([*values, *sorted(forms_of(values[0])), ""])) for part in parts)
    redactor = Redactor(values)
    expected = covering(text, values)
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    stream = redactor.stream()

    pieces = [stream.feed(raw[a:b]) for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    told = b"".join([*pieces, stream.end()])

    assert redactor.text(text) == expected
    assert told.decode() == expected
    assert not any(form in told.decode() for value in values for form in forms_of(value))


@given(_VALUE)
def test_base64_is_found_wherever_the_value_begins(value):
    forms = forms_of(value)
    for inside in base64_inside(value.strip()):
        assert any(form in inside or inside in form for form in forms)


def test_only_possible_beginnings_are_held_back():
    stream = Redactor(["swordfish"]).stream()
    assert stream.feed(b"a line\n") == b"a line\n"
    assert stream.feed(b"sword") == b""
    assert stream.feed(b"s and pens\n") == b"swords and pens\n"
    assert stream.feed(b"swordfis") + stream.end() == b"swordfis"


def test_overlapping_spans_are_merged():
    assert merge_spans([(4, 6), (0, 2), (1, 4), (9, 9)]) == [(0, 6), (9, 9)]
    assert spans_of("aaaaaa", ["aaaa"]) == [(0, 6)]
