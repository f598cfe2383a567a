"""Commands: programs in a process group of their own, watched by the worker's guard.

A command's environment has the worker's variables that `PASSED` and `WorkerSettings.pass_env` name (and LC_*), the
job's own `env`, and the following variables. PATH begins with the folder of the worker's own programs.

    HORAE_EXECUTION_ID  the execution              HORAE_SCHEDULED_AT  when it was due, RFC 3339 UTC
    HORAE_JOB           the job's name             HORAE_PRIORITY      0 (least) to 9 (most urgent)
    HORAE_ATTEMPT       grows with every try       HORAE_PARAMS        the params as JSON; if they are too long for a
    HORAE_TOKEN         the fencing token                              variable, HORAE_PARAMS_FILE names a file instead
    HORAE_OUTPUT        a file for its messages    TRACEPARENT         its trace, if known
                                                   TRACESTATE          the vendors' state of the trace, if any
    HORAE_ARTIFACTS     a folder: files left there are stored, also if the command fails
    HORAE_CHECKPOINT    a file with the last checkpoint of an earlier attempt, if there is one
    HORAE_GUARD         marks its processes for the guard

Its input is empty; its output and errors are its log, line by line. docs/commands.md explains its limits and its user.
"""

import asyncio
import errno
import os
import shutil
import signal
import sysconfig
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from horae.env import SECOND
from horae.model.base.instant import format_instant
from horae.model.definitions.function_signature import BadParams
from horae.model.definitions.resource_limits import NO_LIMITS, ResourceLimits
from horae.model.definitions.tasks import CommandTask
from horae.model.expressions.meter import shared_budget
from horae.model.expressions.template import TemplateError, render
from horae.worker.code.context import Context
from horae.worker.code.failure import checked_result, failed
from horae.worker.environ import PASSED
from horae.worker.holding import ItemOutcome, StartedItem
from horae.worker.logs.lines import Output, OutputMeter, last_lines_of
from horae.worker.plan import PreparedJob
from horae.worker.processes.bounds import ProcessBounds
from horae.worker.processes.run_as import CannotRunAs, SystemUser, user_of
from horae.worker.processes.spawner import ChildProcess, GuardDied, SpawnFailed
from horae.worker.runners.artifacts import upload_all
from horae.worker.runners.base import ChunkRun, LocalPort, RunnerHost
from horae.worker.runners.checkpoints import restore
from horae.worker.runners.output_file import OutputFile
from horae.worker.runners.tasks import TaskRunner

UNBOUND = ProcessBounds()
READ_EVERY = 0.25  # seconds between reads of HORAE_OUTPUT
MAX_ENV_VALUE = 96 * 1024  # the kernel allows 128 KiB for one variable


class Launch(Struct, frozen=True):
    """A program with everything needed to start it."""

    argv: list[str]
    env: dict[str, str]
    cwd: str | None
    bounds: ProcessBounds
    frame: dict[str, Any]  # its limits and its user, for the guard


class RunningCommand:
    """A running command that can be stopped."""

    def __init__(self, host: RunnerHost, grace: float) -> None:
        self.wrote_too_much = False
        self._host = host
        self._grace = grace
        self._child: ChildProcess | None = None
        self._kind: str | None = None

    def started(self, child: ChildProcess) -> None:
        self._child = child
        if self._kind is not None:
            self._end(child)

    def stop(self, kind: str) -> None:
        """Send SIGTERM to the process group, and after the grace time SIGKILL to all processes of the command.

        With the kind `lost`, SIGKILL is sent at once.
        """
        self._kind = kind
        if self._child is not None:
            self._end(self._child)

    def too_much(self) -> None:
        """Stop the command, because it writes too much."""
        self.wrote_too_much = True
        self.stop("lost")

    def _end(self, child: ChildProcess) -> None:
        if self._kind == "lost":
            child.kill()
        else:
            child.terminate()
            self._host.after(self._grace, child.kill)


class CommandRunner(TaskRunner):
    """Runs one command per item and slot."""

    def __init__(self, host: RunnerHost) -> None:
        super().__init__(host)
        names = {*PASSED, *host.settings.pass_env}
        self._env = {k: v for k, v in os.environ.items() if k in names or k.startswith("LC_")}
        self._env["PATH"] = path_with_scripts(self._env.get("PATH", os.defpath))
        self._plain = ProcessBounds(NO_LIMITS, host.settings.limits)

    def stop(self, run: ChunkRun, begun: StartedItem, kind: str) -> None:
        running = run.grip_of(begun)
        if isinstance(running, RunningCommand):
            running.stop(kind)

    async def run_item(self, run: ChunkRun, begun: StartedItem) -> bytes | ItemOutcome:
        context = run.context_of(begun)
        folder = self.host.spawner.folder / f"{context.execution_id}-{context.attempt}"
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            return await self._run(run, begun, context, folder)
        except (BadParams, TemplateError) as error:
            return failed("BadParams", str(error), permanent=True)
        except CannotRunAs as error:
            return failed("CannotRunAs", str(error), permanent=True)
        except GuardDied as error:
            return failed("WorkerProcessDied", str(error), kind="platform")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _run(self, run: ChunkRun, begun: StartedItem, context: Context, folder: Path) -> bytes | ItemOutcome:
        task = run.plan.spec.task
        assert isinstance(task, CommandTask)
        port = context._port
        assert isinstance(port, LocalPort)
        params = run.plan.params(begun[0].item(begun[1]))
        scope = {"params": params}
        user = self._user(task)
        with shared_budget():
            shell = task.shell
            argv = ["/bin/sh", "-c", shell] if shell is not None else [render(part, scope) for part in run.plan.argv]
            cwd = None if run.plan.cwd is None else render(run.plan.cwd, scope)
            env = self._environment(run.plan_of(begun), context, params, folder, user)
        launch = Launch(
            argv=argv,
            env=env,
            cwd=cwd,
            bounds=(bounds := self._bounds(run.plan.limits)),
            frame=bounds.frame() | ({} if user is None else {"user": (user.uid, user.gid)}),
        )
        await restore(port, context.attempt, folder / "checkpoint")
        (folder / "artifacts").mkdir(exist_ok=True)
        file = OutputFile(folder / "output", port)
        if user is not None:
            grant_access(user, folder)
        out, err = (Output(self.host, run.session, stream) for stream in ("stdout", "stderr"))
        try:
            for output in (out, err):
                output.assign(run.session, port.journal)
            status, broken = await self._wait(run, begun, launch, (out, err), file)
        except SpawnFailed as error:
            return start_failure(argv[0], launch.cwd, error, launch.env.get("PATH", ""))
        finally:
            out.close()
            err.close()
        file.finish()
        await file.checkpoints.finish()
        if user is not None:
            os.chown(folder / "artifacts", 0, 0)  # its files cannot be replaced any more
        refused = await upload_all(port, folder / "artifacts", None if user is None else user.uid)
        fate = broken or exit_outcome(status, file.result, last_lines_of(err)(), launch.bounds)
        return fate if refused is None or fate.outcome != "success" else refused

    def _bounds(self, own: ResourceLimits) -> ProcessBounds:
        return self._plain if own == NO_LIMITS else ProcessBounds(own, own.over(self.host.settings.limits))

    def _user(self, task: CommandTask) -> SystemUser | None:
        settings = self.host.settings
        if task.user is not None:
            return user_of(task.user, settings.command_users)
        return user_of(settings.command_user, (settings.command_user,)) if settings.command_user else None

    async def _wait(
        self,
        run: ChunkRun,
        begun: StartedItem,
        launch: Launch,
        outputs: tuple[Output, Output],
        file: OutputFile,
    ) -> tuple[int, ItemOutcome | None]:
        """Start the program and wait until no process of it is left; read its messages meanwhile.

        Return its exit status, and its failure if it exceeded a limit.
        """
        running = RunningCommand(self.host, run.plan.spec.grace / SECOND)
        run.hold(begun, running)
        bounds, spawn = launch.bounds, self.host.spawner.spawn
        meter = None if bounds.all.output is None else OutputMeter(bounds.all.output, running.too_much)
        for output in outputs:
            output.meter = meter
        child = await spawn(launch.argv, launch.env, launch.cwd, [output.writer for output in outputs], launch.frame)
        for output in outputs:
            output.close_writer()
        running.started(child)
        following = self.host.after(READ_EVERY, self._follow, file, child)
        try:
            status = await asyncio.shield(child.exited)
            if child.exceeded is not None:
                return status, bounds.failure_of(*child.exceeded, exit_code=128 + signal.SIGKILL)
            for output in outputs:
                output.drain()  # text that is still in the pipes counts, too
            if not running.wrote_too_much:
                return status, None
            return status, bounds.failure_of("output", exit_code=128 - status if status < 0 else status)
        except asyncio.CancelledError:
            child.kill()
            raise
        finally:
            following.cancel()

    def _follow(self, file: OutputFile, child: ChildProcess) -> None:
        if not child.exited.done():
            file.look()
            self.host.after(READ_EVERY, self._follow, file, child)

    def _environment(
        self, plan: PreparedJob, context: Context, params: dict[str, Any], folder: Path, user: SystemUser | None = None
    ) -> dict[str, str]:
        scope = {"params": params}
        facts = context._facts
        base = self._env if user is None else self._env | user.env
        env = {**base, **{name: render(text, scope) for name, text in plan.env.items()}}
        env |= {
            "HORAE_EXECUTION_ID": str(facts.execution_id),
            "HORAE_JOB": facts.job,
            "HORAE_ATTEMPT": str(facts.attempt),
            "HORAE_TOKEN": str(facts.token),
            "HORAE_PRIORITY": str(facts.priority),
            "HORAE_SCHEDULED_AT": format_instant(facts.scheduled_at),
            "HORAE_OUTPUT": str(folder / "output"),
            "HORAE_CHECKPOINT": str(folder / "checkpoint"),
            "HORAE_ARTIFACTS": str(folder / "artifacts"),
        }
        if facts.trace:
            env["TRACEPARENT"] = facts.trace
            env.pop("TRACESTATE", None)  # it belongs to the worker's own trace
            if facts.trace_state:
                env["TRACESTATE"] = facts.trace_state
        encoded = msgspec.json.encode(params)
        if len(encoded) <= MAX_ENV_VALUE:
            env["HORAE_PARAMS"] = encoded.decode()
        else:
            (folder / "params.json").write_bytes(encoded)
            env["HORAE_PARAMS_FILE"] = str(folder / "params.json")
        return env


def path_with_scripts(path: str) -> str:
    """Return a PATH that begins with the worker's own programs: `horae report` needs no activated environment."""
    scripts = sysconfig.get_path("scripts")
    return path if scripts in path.split(os.pathsep) else os.pathsep.join((scripts, path))


def grant_access(user: SystemUser, folder: Path) -> None:
    """Let a user reach the files of a command: the user owns them, and can only pass the folders above."""
    folder.parent.chmod(0o711)
    folder.chmod(0o711)
    user.own(*(folder / name for name in ("output", "checkpoint", "artifacts", "params.json")))


def exit_outcome(status: int, result: bytes, last_words: str, bounds: ProcessBounds = UNBOUND) -> ItemOutcome:
    """Return the outcome of a command by its exit status."""
    if limit := bounds.limit_of(status):
        return bounds.failure_of(limit, exit_code=128 - status)
    last_words += bounds.memory_hint(last_words)
    if status == 0:
        outcome = checked_result(result)
        if isinstance(outcome, bytes):
            return ItemOutcome(outcome="success", exit_code=0, result=outcome)
        return structs.replace(outcome, exit_code=0)
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return failed("Signal", f"the command was killed by {name}{last_words}", exit_code=128 - status)
    return failed("ExitCode", f"the command ended with exit code {status}{last_words}", exit_code=status)


def start_failure(program: str, cwd: str | None, error: SpawnFailed, path: str) -> ItemOutcome:
    """Return the failure of a command that could not be started, with a remedy.

    A program that this machine lacks is the platform's fault: another worker may have it, and a worker without it must
    not fail all its executions for good.
    """
    if error.step == "user":
        message = f"the system does not let the command run as another user: {error}."
        return failed("CannotRunAs", message, permanent=True)
    if error.step == "chdir" and error.errno == errno.EINVAL:
        return failed("DirectoryNotFound", f"no folder can be called {cwd!r}.", permanent=True)
    if error.step == "chdir":
        message = f"the working directory {cwd!r} cannot be used: {error}. Create it on the worker."
        return failed("DirectoryNotFound", message, kind="platform")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        remedy = "Install it there, give its full path, or send the job to workers that have it with `needs`"
        message = f"there is no command {program!r} on this worker (PATH={path}). {remedy}."
        return failed("CommandNotFound", message, kind="platform")
    if error.errno in (errno.EACCES, errno.ENOEXEC, errno.EPERM):
        message = f"{program!r} cannot be executed: {error}. Make it executable, with a #! line if it is a script."
        return failed("CommandNotExecutable", message, kind="platform")
    if error.errno in (errno.E2BIG, errno.EINVAL):
        message = f"{program!r} was given arguments or an environment that the system refuses: {error}."
        return failed("BadParams", message, permanent=True)
    return failed("CannotStart", f"{program!r} could not be started: {error}.", kind="platform")
