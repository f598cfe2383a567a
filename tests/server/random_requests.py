"""Requests at random, made by schemathesis from the OpenAPI document of a server that listens."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from horae.engine.server_node import ServerNode
from horae.model.fleet.protocol import PROTOCOL, Register
from horae.model.fleet.submit import Submit
from horae.server.openapi import build
from horae.server.reply import encode
from horae.server.routes.table import ROUTES

# Bodies that fit the schema may still be wrong: an unknown dependency, a command that cannot be split.
CONFIG = """
request-timeout = 120
[generation]
max-examples = {examples}
deterministic = true
database = "none"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 404, 409, 410, 412, 413, 422, 426, 429]
[checks.negative_data_rejection]
expected-statuses = [207, 400, 401, 404, 405, 409, 410, 412, 413, 415, 422, 426, 429]
[dictionaries.jobs]
values = ["report", "{job}"]
[dictionaries.executions]
values = ["{execution}"]
[dictionaries.sessions]
values = ["{session}"]
[[operations]]
include-path-regex = "^/api/v1/jobs/"
[operations.parameters]
"path.ref" = {{ dictionary = "jobs", probability = 0.8 }}
[[operations]]
include-path-regex = "^/api/v1/(executions|dlq)/"
[operations.parameters]
"path.id" = {{ dictionary = "executions", probability = 0.8 }}
[[operations]]
include-path-regex = "^/api/v1/(sessions|workers)/"
[operations.parameters]
"path.id" = {{ dictionary = "sessions", probability = 0.8 }}
"""


async def prepare(node: ServerNode) -> dict[str, str]:
    """Something of each kind to act upon."""
    job = await node.definitions.jobs.create(1, {"name": "report", "command": "true", "tags": ["nightly"]})
    (receipt,) = await node.submitter.submit(1, [Submit(job="report")], origin="submit")
    session = await node.gateway.register(1, Register(protocol=PROTOCOL, worker="w1"))
    return {"job": str(job.job_id), "execution": str(receipt.execution_id), "session": str(session.session_id)}


async def schemathesis(
    url: str,
    folder: Path,
    values: Mapping[str, str],
    *,
    key: str | None = None,
    phases: str = "fuzzing",
    examples: int = 1,
    checks: str | None = None,
    only: Sequence[str] = (),
    leaving_out: Sequence[str] = (),
) -> tuple[int | None, str]:
    """Try every operation of a server; the exit code and what was said."""
    config, document = folder / "schemathesis.toml", folder / "openapi.json"
    document.write_bytes(encode(build(ROUTES)))
    config.write_text(CONFIG.format(examples=examples, **values))
    where = [f"{url}/openapi.json"] if key else [str(document), "--url", url]
    run = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run", *where,
        "--phases", phases, "--no-color", "--continue-on-failure", "--no-shrink", "--warnings", "off",
        *(("--header", f"Authorization: Bearer {key}") if key else ()),
        *(("--checks", checks) if checks else ()),
        *(part for name in only for part in ("--include-operation-id", name)),
        *(part for name in leaving_out for part in ("--exclude-operation-id", name)),
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await run.communicate()
    return run.returncode, output.decode()
