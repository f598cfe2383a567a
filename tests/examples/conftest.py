"""Node for the worker in JavaScript."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node."""
    path = shutil.which("node")
    if path is None:
        missing = "node is not on PATH; `make test` as root installs it, or: apt-get install nodejs"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path
