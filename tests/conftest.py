"""What every test may ask for: a fresh PostgreSQL database, a server of its own, a browser's program.

One PostgreSQL serves a whole run. It starts when the first test wants it, whichever xdist worker that is in, and the
controlling process removes it; if that one is killed, the server's keeper does.
"""

import fcntl
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from bench.kit.postgres import Postgres, running_postgres
from tests.long import is_long

if TYPE_CHECKING:
    from playwright.async_api import Page

pytest_plugins = ["tests.failures"]

RUN_FOLDER = "HORAE_TEST_FOLDER"  # handed to the xdist workers through the environment
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Root needs --no-sandbox; the rest keeps the browser from calling anywhere by itself.
BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
BROWSER_FLAGS += ["--disable-quic", "--disable-sync", "--no-first-run"]

settings.register_profile("test", derandomize=True, deadline=None, print_blob=True, max_examples=50)
settings.register_profile(
    "prove", deadline=None, max_examples=5_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("test")


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command that a test runs in this process decides about logs only until the test ends."""
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)


class Run:
    """One run's folder: the PostgreSQL server and the leash that ties both to the controlling process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.leash = folder / "leash"
        self.port = folder / "port"

    def postgres(self) -> Postgres:
        """The run's server, started by whoever asks first."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.port.exists():
                self.port.write_text(str(self._start().port))
        return Postgres(self.folder, int(self.port.read_text()))

    def _start(self) -> Postgres:
        server = Postgres(self.folder)
        end = os.open(self.leash, os.O_RDONLY | os.O_NONBLOCK)  # opening must not wait for a controller that is gone
        os.set_blocking(end, True)
        server.tie(end)
        os.close(end)
        server.create()
        server.start()
        return server


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    run = Run(Path(tempfile.mkdtemp(prefix="horae-tests-")))
    os.mkfifo(run.leash)
    held = os.open(run.leash, os.O_RDWR)
    os.environ[RUN_FOLDER] = str(run.folder)

    def finish() -> None:
        Postgres(run.folder).remove()
        os.close(held)

    config.add_cleanup(finish)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what only `make prove` runs; browsers come first, in one worker and not at the end."""
    items.sort(key=lambda item: item.path.parent.name != "ui")
    if os.environ.get("HORAE_PROVE"):
        return
    for item in items:
        if item.get_closest_marker("prove") or is_long(item.nodeid):
            item.add_marker(pytest.mark.skip(reason="runs in `make prove`"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures of the source, where a test recorded them."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, text in report.user_properties:
            if name == "figures":
                terminalreporter.write_sep("-", "figures of src/horae")
                terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The run's shared server; a test must not stop it (see `own_postgres`)."""
    return Run(Path(os.environ[RUN_FOLDER])).postgres()


_numbers = itertools.count(1)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of a fresh, empty database, dropped after the test whoever is still connected."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that belongs to one test, which may stop, crash and restart it."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser that playwright drives."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        missing = "chromium is not on PATH; `make test` as root installs it, or: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path


@pytest.fixture
async def page(chromium: str) -> AsyncIterator["Page"]:
    """A page of a fresh headless browser; an error in the page's scripts fails the test."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        page = await browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        await browser.close()
    assert errors == []
