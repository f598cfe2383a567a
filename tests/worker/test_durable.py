"""Durable code in a real worker: on the loop, in threads and in processes."""

from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from horae.env import SECOND
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import CommandTask, PythonTask
from tests.waiting import eventually
from tests.worker.functions import app
from tests.worker.local import result, shop


def python(name: str, isolation: str | None = None) -> PythonTask:
    return PythonTask(function=name, isolation=isolation)


@pytest.mark.parametrize(
    "task", [python("travels"), python("travels_sync"), python("travels", "process"), python("travels_sync", "process")]
)
async def test_a_durable_function_continues_after_its_last_step(tmp_path, task):
    async with shop(app) as it:
        how = {"durable": True, "retry": RetryPolicy(retries=1)}
        parcel = it.submit(task, {"folder": str(tmp_path)}, **how)
        waits = await eventually(lambda: [o for o in it.gateway.outcomes if o.outcome == "suspended"])
        assert (waits[0].waits, waits[0].wake_at) == (["@wait:go"], None)
        it.transport.signals["go"] = [{"by": "ada"}]

        assert result(await it.outcome(parcel)) == ["first", "second", {"by": "ada"}, {"n": 3}, ["left", "right"]]
        effects = Path(tmp_path, "effects").read_text().split()
        assert effects[:2] == ["first", "second"]
        assert sorted(effects[2:]) == ["left", "right"]
        kept = {name for steps in it.transport.steps.values() for name in steps}
        assert kept == {"book", "book#2", "@wait:go", "@checkpoint", "left", "right"}


async def test_a_long_sleep_is_suspended_until_its_end_which_is_remembered():
    async with shop(app) as it:
        it.submit(python("naps"), {"seconds": 3600}, durable=True)
        first, second = (await eventually(lambda: len(it.gateway.outcomes) > 1 and it.gateway.outcomes[:2]))[:2]

        assert (first.outcome, second.outcome, second.attempt) == ("suspended", "suspended", 2)
        assert first.wake_at == second.wake_at
        assert 3500 * SECOND < first.wake_at - it.gateway.env.now() <= 3600 * SECOND


async def test_jobs_that_are_not_durable_sleep_without_suspending_but_not_long():
    async with shop(app) as it:
        assert result(await it.run(python("naps_awake"), {"seconds": 0.01})) == 1

        outcome = await it.run(python("naps_awake"), {"seconds": 5}, name="long")
        assert (outcome.error.type, outcome.error.permanent) == ("NotDurable", True)


@pytest.mark.parametrize(
    "task", [python("forgets_to_await"), python("forgets_sync"), python("forgets_sync", "process")]
)  # fmt: skip
async def test_a_step_that_was_created_but_never_run_is_a_failure(task):
    async with shop(app) as it:
        outcome = await it.run(task, {}, durable=True, retry=RetryPolicy(retries=3))
        assert (outcome.outcome, outcome.error.permanent) == ("failed", True)
        assert "ctx.step('charge') was never run: await it, or" in outcome.error.message
        assert "ctx.sync.step(...)" in outcome.error.message


async def test_steps_that_end_together_are_remembered_together():
    async with shop(app) as it:
        assert result(await it.run(python("many_steps"), {"count": 300}, durable=True)) == sum(range(300))
        assert it.transport.calls < 30


async def test_a_wait_inside_a_task_group_fails_with_a_remedy():
    async with shop(app) as it:
        outcome = await it.run(python("group"), durable=True)

        assert (outcome.error.type, "ctx.gather" in outcome.error.message) == ("NotDurable", True)


SCRIPT = """
if [ -s "$HORAE_CHECKPOINT" ]; then echo "from $(cat "$HORAE_CHECKPOINT")"; exit 0; fi
echo '{"checkpoint": {"row": 1}}' >> "$HORAE_OUTPUT"
echo '{"checkpoint": {"row": 2}}' >> "$HORAE_OUTPUT"
exit 1
"""


async def test_a_commands_last_checkpoint_is_there_for_its_next_attempt():
    async with shop() as it:
        parcel = it.submit(CommandTask(shell=SCRIPT), retry=RetryPolicy(retries=1))

        assert (await it.outcome(parcel)).outcome == "success"
        await it.line(parcel, 'from {"row":2}')


async def test_a_checkpoint_that_is_too_large_is_left_out_with_a_warning():
    line = 'python3 -c \'print({"checkpoint": "x" * 70000})\' | tr "\'" \'"\' >> "$HORAE_OUTPUT"'
    async with shop() as it:
        parcel = it.submit(CommandTask(shell=line))
        assert (await it.outcome(parcel)).outcome == "success"
        await it.line(parcel, "is not stored")
        assert it.transport.steps == {}


async def test_a_step_stored_by_an_earlier_call_counts():
    async with shop(app) as it:
        real = it.transport._remember

        def twice(step):
            real(msgspec.structs.replace(step, result=Raw(b"7")))
            return real(step)

        it.transport._remember = twice
        assert result(await it.run(python("many_steps"), {"count": 2}, durable=True)) == 14
