"""Uploads of files that executions left behind, and of results that are too large for a report."""

import asyncio
from pathlib import Path

import msgspec
from msgspec import structs

from horae.errors import HoraeError
from horae.model.executions.output.artifact import RESULT
from horae.model.fleet.protocol import MAX_INLINE_RESULT, MAX_RESULT
from horae.worker.code.artifacts import files_in, upload_request
from horae.worker.code.execution_requests import ArtifactReceipt, ExecutionPort
from horae.worker.code.failure import failed
from horae.worker.holding import ItemOutcome


def is_large(outcome: bytes | ItemOutcome) -> bool:
    """Return whether a result travels as a file."""
    return isinstance(outcome, ItemOutcome) and outcome.outcome == "success" and len(outcome.result) > MAX_INLINE_RESULT


def private_result_failure() -> ItemOutcome:
    """Return the failure of a large result that must not be stored in a file."""
    message = (
        f"the result of a sensitive job has more than {MAX_INLINE_RESULT} bytes; store it elsewhere and return a link"
    )
    return failed("ResultTooLarge", message, permanent=True)


async def upload_result(port: ExecutionPort, fate: ItemOutcome) -> ItemOutcome:
    """Upload a large result and return a success with its address."""
    with upload_request(RESULT, fate.result, "application/json") as file:
        try:
            return _by_reference(fate, await asyncio.wrap_future(port.ask(file)))
        except HoraeError as error:
            return _refused(fate, error)


def upload_result_sync(port: ExecutionPort, fate: ItemOutcome) -> ItemOutcome:
    """Upload a large result in the calling thread, like `bring_result`."""
    with upload_request(RESULT, fate.result, "application/json") as file:
        try:
            return _by_reference(fate, port.ask(file).result())
        except HoraeError as error:
            return _refused(fate, error)


def _by_reference(fate: ItemOutcome, kept: ArtifactReceipt) -> ItemOutcome:
    return structs.replace(fate, result=msgspec.json.encode({"$artifact": kept}))


def _refused(fate: ItemOutcome, error: HoraeError) -> ItemOutcome:
    """Return the result itself if a report can carry it: the store has room for it, too."""
    if len(fate.result) <= MAX_RESULT:
        return fate
    return failed("ResultTooLarge", f"the result cannot be stored: {error}", permanent=True)


async def upload_all(port: ExecutionPort, folder: Path, owner: int | None = None) -> ItemOutcome | None:
    """Upload every file of a folder; None, or the failure of a successful command with a file that was refused.

    A report without all of its files would seem complete.
    """
    refused: ItemOutcome | None = None
    for file in await asyncio.to_thread(files_in, folder, owner):
        try:
            await asyncio.wrap_future(port.ask(file))
        except (HoraeError, OSError) as error:
            message = f"the file {file.name!r} in HORAE_ARTIFACTS cannot be stored: {error}"
            port.log("log", f"WARNING {message}")
            refused = refused or failed("ArtifactRefused", message, permanent=True)
    return refused
