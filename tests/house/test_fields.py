"""Each field of a noun is declared once: no other module than its table, its rules and its codecs spells its name.

Three things count as spelling a name. What else a word may mean decides which of them a name is looked for in:

- A literal, wherever it stands, if the name is a compound such as `pauseAfter`.
- A key of a document, as in `document["retries"]` and `document.get("retries")`, if the name is the noun's own: no
  other noun, body or answer of the API has a field of that name.
- A list of the noun's fields: three names of its own among few others, or three names of any sort alone, in a dict, a
  tuple, a list or a set; five names of its own as annotations of a class or parameters of a function.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import horae
from horae.server.openapi import build
from horae.server.routes.table import ROUTES
from tests.house import spelled
from tests.house.nouns import NOUNS, Noun

PACKAGE = Path(horae.__file__).parent
WRITTEN = (".options", ".trigger_options", ".dead_letter_options")  # modules that tools/sdk writes
LIST = 3  # so many names make a list
DECLARATION = 5  # so many annotations or parameters make one; fewer are what a function uses of the noun


@cache
def schemas() -> list[frozenset[str]]:
    """The fields of each body and answer of the API."""
    return [frozenset(one.get("properties", ())) for one in build(ROUTES)["components"]["schemas"].values()]


@cache
def own(noun: Noun) -> frozenset[str]:
    """The names that mean a field of this noun: of what has less than half of its fields, nothing has them."""
    fields = frozenset(noun.fields)
    others = [one for one in schemas() if 2 * len(one & fields) < len(fields)]
    others += [frozenset(other.fields) for other in NOUNS if other.name != noun.name]
    return fields.difference(noun.common, *others)


def wrong_in(source: str, nouns: tuple[Noun, ...]) -> Iterator[str]:
    """Yield what a module spells of nouns that are not at home in it."""
    for noun in nouns:
        found = {*spelled.compounds(source, noun.fields), *spelled.keys(source, own(noun))}
        yield from (f"line {line}: {name} of a {noun.name}" for line, name in sorted(found))
        listed = [(line, names) for line, names in spelled.lists(source) if is_list(noun, names)]
        listed += [(line, names) for line, names in spelled.declared(source) if is_own(noun, names, DECLARATION)]
        yield from (f"line {line}: fields of a {noun.name}: {', '.join(names)}" for line, names in listed)


def is_list(noun: Noun, names: list[str]) -> bool:
    return is_own(noun, names, LIST) or (len(set(names)) >= LIST and set(names) <= set(noun.fields))


def is_own(noun: Noun, names: list[str], least: int) -> bool:
    """Tell whether so many of these names are the noun's own, and most of them fields of it."""
    said = set(names)
    return len(said & own(noun)) >= least and 2 * len(said & set(noun.fields)) >= len(said)


def strangers(place: str) -> tuple[Noun, ...]:
    """The nouns that are not at home in a module; a field that is at home there for one noun may be spelled."""
    at_home = [noun for noun in NOUNS if is_home(noun, place)]
    known = {field for noun in at_home for field in noun.fields}
    return tuple(
        noun._replace(fields=tuple(field for field in noun.fields if field not in known))
        for noun in NOUNS
        if noun not in at_home
    )


def is_home(noun: Noun, place: str) -> bool:
    return any(f"{place}.".startswith(f"{home}.") for home in noun.homes)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not name.endswith(WRITTEN):
            yield name, path


def test_no_module_spells_fields_of_a_noun_but_its_table_its_rules_and_its_codecs() -> None:
    wrong = [f"{place}, {use}" for place, path in modules() for use in wrong_in(path.read_text(), strangers(place))]
    assert wrong == [], "Derive them from the noun's table."


def test_every_home_of_a_noun_spells_some_of_its_fields() -> None:
    idle = []
    for noun in NOUNS:
        for home in noun.homes:
            texts = [path.read_text() for place, path in modules() if f"{place}.".startswith(f"{home}.")]
            if not any(True for text in texts for _ in wrong_in(text, (noun,))):
                idle.append(f"{noun.name}: {home}")
    assert idle == [], "Take them out of tests/house/nouns.py."


JOB_NOUN = NOUNS[0]


@pytest.mark.parametrize(
    "text",
    [
        'field = "pauseAfter"',
        'document["circuit"]',
        'document.get("debounce")',
        'FIELDS = ("name", "queue", "priority")',
        'body = {"retry": 1, "circuit": 2, "unique": 3, "colour": 4}',
        "class Job:\n    circuit: str\n    pause_after: int\n    retry: str\n    unique: str\n    schema: dict",
        "def job(self, *, circuit, pause_after, retry, unique, schema): ...",
    ],
)
def test_the_check_sees_names_of_a_job(text: str) -> None:
    assert list(wrong_in(text, (JOB_NOUN,)))


@pytest.mark.parametrize(
    "text",
    [
        '"""A job has `pauseAfter` and `circuit`."""',
        'row["name"], row["queue"]',
        'state == "retry"',
        'GATES = ("retry", "hold", "turn", "room")',
        "def settle(*, retry, durable, delivery): ...",
    ],
)
def test_the_check_passes_over_words_that_mean_something_else(text: str) -> None:
    assert list(wrong_in(text, (JOB_NOUN,))) == []
