"""Seeds of simulations: some in every run, many in `make prove`, and a single one by HORAE_SEED, for a replay."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
ONLY = os.environ.get("HORAE_SEED")


def seeds(some: int, many: int, size: int) -> pytest.MarkDecorator:
    """Parametrize a test by groups of `size` seeds: `some` seeds in every run, `many` in `make prove`."""
    groups: list[Any] = [range(n, n + size) for n in range(0, some, size)]
    groups += [pytest.param(range(n, n + size), marks=pytest.mark.prove) for n in range(some, many, size)]
    if ONLY:
        groups = [range(int(ONLY), int(ONLY) + 1)]
    return pytest.mark.parametrize("group", groups, ids=lambda group: str(group.start))


def each(group: range, simulate: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
    """Simulate with each seed; an error gets a note with the command that replays it."""
    done = []
    for seed in group:
        try:
            done.append(asyncio.run(simulate(seed)))
        except BaseException as error:
            error.add_note(f"seed {seed}: replay with HORAE_SEED={seed} pytest {simulate.__code__.co_filename}")
            raise
    return done
