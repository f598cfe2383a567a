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
    """Return whether an outcome is a success with a result that must be uploaded as a file."""
    return isinstance(outcome, ItemOutcome) and outcome.outcome == "success" and len(outcome.result) > MAX_INLINE_RESULT


def private_result_failure() -> ItemOutcome:
    """Return the failure of an execution with a large result that must not be stored in a file."""
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
    """Upload a large result like `upload_result`, but wait for it in the calling thread."""
    with upload_request(RESULT, fate.result, "application/json") as file:
        try:
            return _by_reference(fate, port.ask(file).result())
        except HoraeError as error:
            return _refused(fate, error)


def _by_reference(fate: ItemOutcome, kept: ArtifactReceipt) -> ItemOutcome:
    return structs.replace(fate, result=msgspec.json.encode({"$artifact": kept}))


def _refused(fate: ItemOutcome, error: HoraeError) -> ItemOutcome:
    """Return the outcome if the upload was refused: with the result itself, unless it is too large for a report."""
    if len(fate.result) <= MAX_RESULT:
        return fate
    return failed("ResultTooLarge", f"the result cannot be stored: {error}", permanent=True)


async def upload_all(port: ExecutionPort, folder: Path, owner: int | None = None) -> ItemOutcome | None:
    """Upload every file of a folder. Return None, or a failure if a file was refused.

    The failure replaces the success of a command, because a success would suggest that all files were stored.
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
