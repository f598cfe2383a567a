"""Files that executions left behind, and results that are too large to lie with them: brought, or told why not."""

import asyncio
from pathlib import Path

import msgspec
from msgspec import structs

from horae.errors import HoraeError
from horae.model.executions.output.artifact import RESULT
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT
from horae.worker.code.artifacts import bringing, found_in
from horae.worker.code.asks import ArtifactReceipt, ExecutionPort
from horae.worker.code.failure import failed
from horae.worker.holding import ItemOutcome


def is_large(outcome: bytes | ItemOutcome) -> bool:
    """Whether a result travels as a file."""
    return isinstance(outcome, ItemOutcome) and outcome.outcome == "success" and len(outcome.result) > MAX_INLINE_RESULT


def too_private() -> ItemOutcome:
    """What becomes of a large result that is not to lie in a file."""
    said = f"the result of a sensitive job has more than {MAX_INLINE_RESULT} bytes; keep it elsewhere and return where"
    return failed("ResultTooLarge", said, permanent=True)


async def bring_result(port: ExecutionPort, fate: ItemOutcome) -> ItemOutcome:
    """A success whose result is the address of the file that it became."""
    with bringing(RESULT, fate.result, "application/json") as file:
        try:
            return _by_reference(fate, await asyncio.wrap_future(port.ask(file)))
        except HoraeError as error:
            return _refused(fate, error)


def bring_result_here(port: ExecutionPort, fate: ItemOutcome) -> ItemOutcome:
    """The same in a thread of its own."""
    with bringing(RESULT, fate.result, "application/json") as file:
        try:
            return _by_reference(fate, port.ask(file).result())
        except HoraeError as error:
            return _refused(fate, error)


def _by_reference(fate: ItemOutcome, kept: ArtifactReceipt) -> ItemOutcome:
    return structs.replace(fate, result=msgspec.json.encode({"$artifact": kept}))


def _refused(fate: ItemOutcome, error: HoraeError) -> ItemOutcome:
    """One that a report can carry goes with it: the store has a place for it, too."""
    if len(fate.result) <= MAX_RESULT:
        return fate
    return failed("ResultTooLarge", f"the result cannot be kept: {error}", permanent=True)


async def bring_all(port: ExecutionPort, folder: Path, owner: int | None = None) -> ItemOutcome | None:
    """Have everything in a folder kept; None, or what a command that ended well ends with because of one that was not.

    A report without the files that belong to it would be read as if it were whole.
    """
    refused: ItemOutcome | None = None
    for file in await asyncio.to_thread(found_in, folder, owner):
        try:
            await asyncio.wrap_future(port.ask(file))
        except (HoraeError, OSError) as error:
            said = f"the file {file.name!r} in HORAE_ARTIFACTS cannot be kept: {error}"
            port.log("log", f"WARNING {said}")
            refused = refused or failed("ArtifactRefused", said, permanent=True)
    return refused
