"""Who notices a mutation: a scene, a crossing, or a contract test on SQLite in memory."""

from importlib import import_module

import pytest

from horae.env import virtual_env
from horae.store.open import open_store_driver
from tests.races.crossings import CROSSINGS, cross
from tests.races.mutations import Mutation, applied
from tests.races.scenes import SCENES
from tests.races.stage import Stage
from tests.store_contract.world import World

MOST = 400  # interleavings of a scene in which a mutation must show itself


async def notices(stage: Stage, mutation: Mutation, who: str, seed: int = 1) -> str | None:
    """How a scene, crossing or contract test notices a mutation; None if it does not."""
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
    module, name = test.split(".")
    check = getattr(import_module(f"tests.store_contract.moves.{module}"), name)
    env = virtual_env()
    driver = await open_store_driver("sqlite://", env)
    await driver.migrate()
    world = World(driver, env)
    try:
        with applied(mutation):
            await check(world)
        await world.check()
    except (Exception, pytest.fail.Exception) as wrong:  # whatever a test fails with
        return f"it fails ({type(wrong).__name__})"
    finally:
        await driver.close()
    return None
