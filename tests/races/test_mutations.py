"""The removal of any lock or guard breaks something, and is noticed."""

import pytest

from tests.marks import marks
from tests.races.catching import notices
from tests.races.crossings import CROSSINGS, cross
from tests.races.mutating.code import CodeEdit
from tests.races.mutating.mutation import applied
from tests.races.mutations.catalog import GROUPS, MUTATIONS
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


def test_a_mutation_has_a_detector_or_a_reason_to_keep_its_guard():
    for mutation in MUTATIONS.values():
        assert bool(mutation.caught_by) != bool(mutation.kept_because), mutation.name
        with applied(mutation):
            pass


def test_every_marked_guard_is_removed_by_a_mutation():
    """A mark without a mutation is an untested guard; a mark that two guards share is ambiguous."""
    marked = sorted(mark.text for mark in marks("guard"))
    edits = [edit for mutation in MUTATIONS.values() for edit in mutation.edits]
    assert marked == sorted({edit.guard for edit in edits if isinstance(edit, CodeEdit)})


def test_mutations_have_names_of_their_own():
    assert len(MUTATIONS) == sum(len(group) for group in GROUPS)


def test_scenes_and_crossings_have_names_of_their_own():
    assert not set(SCENES) & set(CROSSINGS)
