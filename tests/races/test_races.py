"""Pairs of operations, interleaved statement by statement on PostgreSQL: a sample here, all by `tools/races`."""

import pytest

from tests.races.scenes import SCENES
from tests.races.stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="session")
SAMPLE = 10  # interleavings of each pair; its seed is fixed
SEED = 2026


@pytest.mark.parametrize("name", SCENES)
async def test_the_invariants_hold_in_every_order(stage: Stage, name: str):
    verdict = await stage.play(SCENES[name], most=SAMPLE, seed=SEED)

    assert verdict.violations == []
    assert verdict.runs == SAMPLE or verdict.complete
