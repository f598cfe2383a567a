import os
from pathlib import Path

import pytest

from tests.conftest import RUN_FOLDER
from tests.package.built import Built, build


@pytest.fixture(scope="session")
def built() -> Built:
    """Build the wheel and the sdist with the tools of the development environment."""
    return build(Path(os.environ[RUN_FOLDER]) / "package", "--no-isolation")
