"""Parsing of documentation: links, code blocks, tables."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))


def links(page: Path) -> Iterator[str]:
    """Yield every target of a link."""
    yield from _LINK.findall(without_code(page.read_text()))


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks in a language."""
    return [body for found, body in _FENCE.findall(text) if found == language]


def headings(text: str) -> list[str]:
    return _HEADING.findall(_FENCE.sub("", text))


def anchors(page: Path) -> set[str]:
    """Return the possible anchors of a page: headings in lower case, words joined by hyphens."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(page.read_text()))
    return {text.replace(" ", "-") for text in plain}


def section(text: str, heading: str) -> str:
    """Return the text under a heading, up to the next of its rank."""
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"There is no section {heading!r}."
    return found[2]


def first_cells(text: str) -> list[str]:
    """Return the first column of every table: the words in backticks."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]
