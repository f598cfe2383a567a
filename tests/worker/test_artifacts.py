"""Files that executions leave behind: by functions with any runner, by commands, and over HTTP in pieces."""

import os
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from horae.errors import NotFound, TooLarge
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.worker.code.artifacts import files_in, read_pieces
from horae.worker.code.execution_requests import ArtifactReceipt, UploadArtifact
from horae.worker.http_transport import HttpTransport
from tests.worker import functions
from tests.worker.local import result, shop
from tests.worker.test_transport import ok, problem
from tests.worker.web import web

ID = UUID("0198c5a0-0000-7000-8000-000000000000")


async def test_a_file_that_was_replaced_is_not_read(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("own")
    (own,), (others,) = files_in(tmp_path, os.getuid()), files_in(tmp_path, os.getuid() + 1)
    assert [piece async for piece in read_pieces(own)] == [b"own"]
    with pytest.raises(PermissionError, match="not a plain file of the user"):
        await anext(read_pieces(others))
    path.unlink()
    os.mkfifo(path)  # to open it would block for ever
    with pytest.raises(PermissionError):
        await anext(read_pieces(own))


@pytest.mark.parametrize(
    ("function", "isolation"), [("leave", "thread"), ("leave", "process"), ("leave_async", None)]
)  # fmt: skip
async def test_a_function_leaves_bytes_and_files_behind(function: str, isolation, tmp_path: Path):
    async with shop(functions.app) as it:
        outcome = await it.run(PythonTask(function=function, isolation=isolation), {"folder": str(tmp_path)})

        assert result(outcome) == [5, "text/csv"]
        assert it.transport.artifacts == {
            "note.txt": ("text/plain", b"hello"),
            "tables/long.csv": ("text/csv", b"a,b\n" * 100_000),
        }


async def test_files_in_a_commands_folder_are_stored_even_if_it_fails():
    line = 'cd "$HORAE_ARTIFACTS"; mkdir plots; echo hi > plots/a.txt; ln -s /etc/passwd x'
    async with shop() as it:
        assert (await it.run(CommandTask(shell=line))).outcome == "success"
        assert it.transport.artifacts == {"plots/a.txt": ("text/plain", b"hi\n")}
        outcome = await it.run(CommandTask(shell='echo why > "$HORAE_ARTIFACTS/core"; exit 3'), name="failing")
        assert (outcome.outcome, outcome.exit_code) == ("failed", 3)
        assert it.transport.artifacts["core"] == ("application/octet-stream", b"why\n")


async def test_a_file_that_cannot_be_stored_fails_a_successful_command():
    async with shop() as it:
        parcel = it.submit(CommandTask(shell='head -c 2000000 /dev/zero > "$HORAE_ARTIFACTS/large"'))
        outcome = await it.outcome(parcel)

        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.permanent) == ("ArtifactRefused", True)
        assert "'large'" in outcome.error.message
        assert any("cannot be stored" in line for line in it.gateway.lines(parcel, 0))


async def test_a_file_is_uploaded_in_pieces_and_a_refusal_is_reported(tmp_path: Path):
    content = bytes(range(256)) * 8192
    path = tmp_path / "a"
    path.write_bytes(content)
    kept = {"name": "a b", "url": "/u", "size": len(content), "type": "x/y", "sha256": "s", "attempt": 1}
    answers = iter([ok(kept), problem(413, "too-large"), problem(404, "not-found")])

    def answer(asked):
        return next(answers)(asked)

    async with web(answer) as site:
        transport = HttpTransport([site.url], "k", rng=Random(1))
        file = UploadArtifact("a b", str(path), "x/y")
        assert await transport.upload_artifact(ID, ID, 3, 1, file) == ArtifactReceipt(
            name="a b", url="/u", size=len(content), type="x/y", sha256="s"
        )
        asked = site.asked[0]
        assert asked.path == f"/api/v1/sessions/{ID}/artifacts/a%20b?parcel={ID}&item=3&attempt=1"
        assert (asked.method, asked.body, asked.headers["content-type"]) == ("PUT", content, "x/y")
        with pytest.raises(TooLarge):
            await transport.upload_artifact(ID, ID, 3, 1, file)
        with pytest.raises(NotFound):
            await transport.upload_artifact(ID, ID, 3, 1, file)
        await transport.close()


@pytest.mark.parametrize(
    ("function", "isolation"), [("much", "thread"), ("much", "process"), ("much_async", None)]
)  # fmt: skip
async def test_a_result_over_64_kib_becomes_a_file(function: str, isolation):
    async with shop(functions.app) as it:
        outcome = await it.run(PythonTask(function=function, isolation=isolation), {"n": 65_534})
        assert len(result(outcome)) == 65_534
        it.transport.most = 3_000_000
        for n in (65_535, 2_000_000):
            told = result(await it.run(PythonTask(function=function, isolation=isolation), {"n": n}))["$artifact"]
            assert (told["name"], told["size"], told["type"]) == (":result", n + 2, "application/json")
            assert it.transport.artifacts[":result"][1] == b'"' + b"x" * n + b'"'


async def test_a_result_whose_file_is_refused_goes_with_the_report_or_fails():
    async with shop(functions.app) as it:
        it.transport.most = 10
        outcome = await it.run(PythonTask(function="much_async"), {"n": 900_000})
        assert len(result(outcome)) == 900_000
        outcome = await it.run(PythonTask(function="much_async"), {"n": 2_000_000})
        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.permanent) == ("ResultTooLarge", True)


async def test_the_result_of_a_command_becomes_a_file():
    line = """printf '{"result": "%s"}' "$(head -c 100000 /dev/zero | tr '\\0' x)" > "$HORAE_OUTPUT\""""
    async with shop() as it:
        assert result(await it.run(CommandTask(shell=line)))["$artifact"]["size"] == 100_002
