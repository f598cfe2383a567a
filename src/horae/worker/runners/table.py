"""The runner for each kind of plan."""

from horae.worker.code.failure import failed
from horae.worker.runners.base import BaseRunner, ChunkRun, RunnerHost
from horae.worker.runners.command import CommandRunner
from horae.worker.runners.http import HttpRunner
from horae.worker.runners.process import ProcessRunner
from horae.worker.runners.tasks import TaskRunner
from horae.worker.runners.threads import ThreadRunner


class FailingRunner(BaseRunner):
    """Ends every item of a job that cannot run here, with the reason."""

    def begin(self, run: ChunkRun) -> None:
        fate = run.plan.problem or failed("BadDefinition", "this worker cannot run the job")
        while begun := run.chunk.begin(self.clock.monotonic()):
            run.chunk.end(begun, self.clock.monotonic(), fate)
        self.host.release_slot(run)


def runners_for(host: RunnerHost) -> dict[str, BaseRunner]:
    """Return a worker's runners, by kind of plan."""
    return {
        "thread": ThreadRunner(host),
        "async": TaskRunner(host),
        "process": ProcessRunner(host),
        "command": CommandRunner(host),
        "http": HttpRunner(host),
        "broken": FailingRunner(host),
    }
