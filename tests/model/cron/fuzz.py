"""Texts similar to expressions: each is parsed or refused quickly, and parsed ones answer any query."""

import gc
from contextlib import suppress
from random import Random
from time import process_time

from msgspec import Struct

from horae.errors import BadInput
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.lint import lint
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.words.calendar import cron_in_words
from tests.model.cron.writing import quartz_text, unix_text

ALPHABET = "0123456789*/-,?LWH#() MONJASUFRI@.xé\t\0"
LONGEST = 5e-3  # seconds of processor time for an answer


class Fuzzed(Struct):
    """The number of tried texts and of parsed ones, and the slowest text."""

    texts: int = 0
    accepted: int = 0
    slowest: float = 0.0
    slowest_text: str = ""


def fuzz(texts: int, seed: int) -> Fuzzed:
    """Try texts in both dialects; any other exception is raised."""
    rng, found = Random(seed), Fuzzed()
    gc.disable()  # a collection would count for an arbitrary text
    try:
        for number in range(texts):
            _try(found, _text(rng), rng.choice(("unix", "quartz")))
            if number % 10_000 == 0:
                gc.collect()
    finally:
        gc.enable()
    return found


def _try(found: Fuzzed, text: str, dialect: str) -> None:
    took, x = _read(text, dialect)
    if took > LONGEST / 2:  # the machine may have been busy
        took = min(took, *(_read(text, dialect)[0] for _ in range(3)))
    found.texts += 1
    if took > found.slowest:
        found.slowest, found.slowest_text = took, text
    if x is not None:
        found.accepted += 1
        lint(x)
        cron_in_words(x)
        coming = next_after(x, "Europe/Paris", 0)
        assert coming is None or last_before(x, "Europe/Paris", coming + 1) == coming, text


def _read(text, dialect):
    began, x = process_time(), None
    with suppress(BadInput):
        x = parse_cron.__wrapped__(text, dialect, "default/fuzz")
    return process_time() - began, x


def _text(rng: Random) -> str:
    """Return an expression with a few characters changed, a field repeated many times, or noise."""
    kind = rng.random()
    if kind < 0.1:
        return "".join(rng.choices(ALPHABET, k=rng.randint(0, 60)))
    text = rng.choice((unix_text, quartz_text))(rng)
    if kind < 0.2:
        fields = text.split()
        place = rng.randrange(len(fields))
        fields[place] = ",".join([fields[place]] * rng.randint(2, 200))
        return " ".join(fields)
    for _ in range(rng.randint(0, 4)):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(ALPHABET) + text[place + rng.randint(0, 1) :]
    return text
