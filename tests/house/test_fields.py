"""Each field of a noun is declared once: only its table, its rules and its codecs spell its name.

Three things count as spelling a name. Which of them are checked depends on the other meanings of the word:

- A literal anywhere, if the name is a compound such as `pauseAfter`.
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
LIST = 3  # number of names that count as a list
DECLARATION = 5  # number of annotations or parameters that count as a list; functions may use fewer


@cache
def schemas() -> list[frozenset[str]]:
    """Return the fields of each body and answer of the API."""
    return [frozenset(one.get("properties", ())) for one in build(ROUTES)["components"]["schemas"].values()]


@cache
def own(noun: Noun) -> frozenset[str]:
    """Return the names that only this noun has, apart from nouns that share at least half of its fields."""
    fields = frozenset(noun.fields)
    others = [one for one in schemas() if 2 * len(one & fields) < len(fields)]
    others += [frozenset(other.fields) for other in NOUNS if other.name != noun.name]
    return fields.difference(noun.common, *others)


def wrong_in(source: str, nouns: tuple[Noun, ...]) -> Iterator[str]:
    """Yield the spelled fields of nouns for which a module is not listed."""
    for noun in nouns:
        found = {*spelled.compounds(source, noun.fields), *spelled.keys(source, own(noun))}
        yield from (f"line {line}: {name} of a {noun.name}" for line, name in sorted(found))
        listed = [(line, names) for line, names in spelled.lists(source) if is_list(noun, names)]
        listed += [(line, names) for line, names in spelled.declared(source) if is_own(noun, names, DECLARATION)]
        yield from (f"line {line}: fields of a {noun.name}: {', '.join(names)}" for line, names in listed)


def is_list(noun: Noun, names: list[str]) -> bool:
    return is_own(noun, names, LIST) or (len(set(names)) >= LIST and set(names) <= set(noun.fields))


def is_own(noun: Noun, names: list[str], least: int) -> bool:
    """Return whether enough of these names are the noun's own, and most of them are fields of it."""
    said = set(names)
    return len(said & own(noun)) >= least and 2 * len(said & set(noun.fields)) >= len(said)


def strangers(place: str) -> tuple[Noun, ...]:
    """Return the nouns for which a module is not listed; a field of a listed noun may be spelled."""
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


def test_only_tables_rules_and_codecs_spell_fields() -> None:
    wrong = [f"{place}, {use}" for place, path in modules() for use in wrong_in(path.read_text(), strangers(place))]
    assert wrong == [], "Derive them from the noun's table."


def test_every_listed_module_spells_some_fields() -> None:
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
def test_the_check_finds_field_names_of_a_job(text: str) -> None:
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
def test_the_check_ignores_words_with_another_meaning(text: str) -> None:
    assert list(wrong_in(text, (JOB_NOUN,))) == []
