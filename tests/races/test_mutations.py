"""Without any one lock or guard something breaks, and is noticed."""

import pytest

from tests.races.catching import notices
from tests.races.crossings import CROSSINGS, cross
from tests.races.mutations import MUTATIONS, applied
from tests.races.scenes import SCENES
from tests.races.stage import Stage

on_stage = pytest.mark.asyncio(loop_scope="session")
SEED = 2026
CATCHABLE = [name for name, mutation in MUTATIONS.items() if mutation.caught_by]


@on_stage
@pytest.mark.parametrize("name", CATCHABLE)
async def test_a_missing_guard_is_noticed(stage: Stage, name: str):
    mutation = MUTATIONS[name]
    assert await notices(stage, mutation, mutation.caught_by, SEED) is not None


@on_stage
@pytest.mark.parametrize("name", CROSSINGS)
async def test_locks_within_a_statement_are_taken_in_one_order(stage: Stage, name: str):
    assert await cross(stage, CROSSINGS[name]) is None


def test_a_mutation_says_who_notices_it_or_why_its_guard_is_kept():
    for mutation in MUTATIONS.values():
        assert bool(mutation.caught_by) != bool(mutation.kept_because), mutation.name
        with applied(mutation):
            pass


def test_scenes_and_crossings_have_names_of_their_own():
    assert not set(SCENES) & set(CROSSINGS)
