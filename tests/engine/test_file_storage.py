"""The storage of files in a folder: they survive a crash, and an interrupted upload closes its file."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from horae.engine.storage import file_storage
from horae.engine.storage.file_storage import Folder
from tests.waiting import eventually


async def pieces() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"


async def test_a_file_and_its_new_folders_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[Path] = []
    monkeypatch.setattr(file_storage, "_sync", synced.append)
    folder = Folder(tmp_path / "kept")

    await folder.write("1/a/first", pieces())
    assert {*synced} == {tmp_path, tmp_path / "kept", tmp_path / "kept/1", tmp_path / "kept/1/a"}
    synced.clear()
    await folder.write("1/a/second", pieces())
    assert {*synced} == {tmp_path / "kept/1/a"}
    assert (tmp_path / "kept/1/a/second").read_bytes() == b"onetwo"


@pytest.mark.parametrize("at", ["create_file", "_write"])
async def test_an_interrupted_upload_closes_its_file_when_nothing_uses_it_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
):
    begun, go_on, used, closed = Event(), Event(), list[int](), list[int]()
    where = file_storage.private if at == "create_file" else file_storage
    work, close = getattr(where, at), os.close

    def slow(*given):
        begun.set()
        go_on.wait()
        done = work(*given)
        used.append(done if at == "create_file" else given[0])
        return done

    def counted(descriptor: int) -> None:
        closed.append(descriptor)
        close(descriptor)

    monkeypatch.setattr(where, at, slow)
    upload = asyncio.ensure_future(Folder(tmp_path).write("file", pieces()))
    await eventually(begun.is_set)
    monkeypatch.setattr(os, "close", counted)
    upload.cancel()
    await asyncio.sleep(0)
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await upload
    await eventually(lambda: used)
    assert closed == used
