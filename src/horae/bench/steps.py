"""Remembered steps: how many a second one worker has remembered, each on disk before its code goes on."""

import time

from horae.bench.stage import Stage

WITHIN = 300.0  # seconds


async def remember_steps(stage: Stage, executions: int, steps: int) -> float:
    """Run durable executions side by side in the stage's worker; steps a second that were remembered.

    Each execution has its steps one after another, so what is measured is the group commit of what meets.
    """
    began = time.perf_counter()
    made = await stage.client.submit_many("bench-steps", [{"steps": steps}] * executions)
    last = [str(one.id) for one in made]

    async def all_ended() -> bool:
        while last:
            if not (await stage.client.executions.get(last[-1])).is_final:
                return False
            last.pop()
        return True

    await stage.until(all_ended, f"{executions} executions of {steps} steps", WITHIN)
    return executions * steps / (time.perf_counter() - began)
