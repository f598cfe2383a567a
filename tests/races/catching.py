"""Detection of mutations: by a scene, a crossing, or a contract test on SQLite in memory."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from horae.env import virtual_env
from horae.store.open import open_store_driver
from tests.races.crossings import CROSSINGS, cross
from tests.races.mutating.mutation import Mutation, applied
from tests.races.scenes import SCENES
from tests.races.stage import Stage
from tests.store_contract.world import World

TESTS = Path(__file__).parents[1]
Check = Callable[..., Coroutine[Any, Any, None]]
MOST = 400  # interleavings of a scene within which a mutation must be noticed


async def notices(stage: Stage, mutation: Mutation, who: str, seed: int = 1) -> str | None:
    """Return the way in which a scene, crossing or contract test notices a mutation; None if it does not."""
    if who in SCENES:
        verdict = await stage.play(SCENES[who], most=MOST, seed=seed, changed=lambda: applied(mutation))
        if not verdict.violations:
            return None
        wrong = verdict.violations[0][1].splitlines()[0]
        return f"{wrong} (interleaving {verdict.runs})"
    if who in CROSSINGS:
        return await cross(stage, CROSSINGS[who], applied(mutation))
    return await contract_notices(mutation, who)


async def contract_notices(mutation: Mutation, test: str) -> str | None:
    """Return the way in which a contract test notices a mutation, with any of its parameters; without it, the test
    passes.
    """
    check = contract_test(test)
    for given in _parameters(check):
        wrong = await _fails(check, given, nullcontext())
        assert wrong is None, f"{test} fails without a mutation, too: {wrong!r}"
        wrong = await _fails(check, given, applied(mutation))
        if wrong is not None:
            return f"it fails ({type(wrong).__name__})"
    return None


@cache
def contract_test(name: str) -> Check:
    """Return a test of the store's contract by its module and function, in whatever folder the module is."""
    module, function = name.split(".")
    paths = [path for path in TESTS.rglob(f"{module}.py") if f"async def {function}(world: World" in path.read_text()]
    assert len(paths) == 1, f"{len(paths)} modules have a test {name}; there must be one"
    dotted = ".".join(paths[0].relative_to(TESTS.parent).with_suffix("").parts)
    check: Check = getattr(import_module(dotted), function)
    return check


def _parameters(check: Check) -> Iterator[dict[str, Any]]:
    """Return the arguments of a test beside its world, once for each of its parameters."""
    marked = [mark.args for mark in getattr(check, "pytestmark", ()) if mark.name == "parametrize"]
    names = [name for name, *_ in marked]
    for values in product(*(values for _, values, *_ in marked)):
        yield dict(zip(names, values, strict=True))


async def _fails(check: Check, given: dict[str, Any], changed: AbstractContextManager[None]) -> BaseException | None:
    """Return the failure of a contract test on a new store."""
    env = virtual_env()
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    world = World(driver, env)
    try:
        with changed:
            await check(world, **given)
        await world.check()
    except (Exception, pytest.fail.Exception) as wrong:  # any failure of a test
        return wrong
    finally:
        await driver.close()
    return None
