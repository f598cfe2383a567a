"""`.ci/run` repeats failed tests, each alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
from pathlib import Path
SEEN = Path(__file__).with_name("seen")

def test_flaky():
    print("the first output")
    first = not SEEN.exists()
    SEEN.touch()
    assert not first

def test_sound():
    assert True
"""


class Project:
    """A folder with tests and this project's plugin that writes failures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures = folder / "failures.json"
        self.pytest = [sys.executable, "-m", "pytest", "-p", "tests.failures", "-p", "xdist", "--rootdir=."]

    def write(self, tests: str) -> None:
        (self.folder / "test_it.py").write_text(tests)
        (self.folder / "pytest.ini").write_text("[pytest]\n")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "FAILED_TESTS": str(self.failures),
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=150)

    def run_twice(self, *options: str) -> subprocess.CompletedProcess[str]:
        self.run(*self.pytest, *options)
        return self.run(sys.executable, str(ROOT / "tools/retry"), str(self.failures), *self.pytest)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_passes_alone_is_flaky_and_keeps_its_first_output(project, workers):
    project.write(TESTS)

    again = project.run_twice("-n", workers)

    assert again.returncode == 0, again.stdout
    assert "FLAKY: test_it.py::test_flaky" in again.stdout
    assert "the first output" in again.stdout
    assert "test_sound" not in again.stdout
    assert "1 flaky, 0 broken" in again.stdout


def test_a_test_that_fails_twice_fails_the_run(project):
    project.write(TESTS + "\ndef test_broken():\n    assert False\n")

    again = project.run_twice()

    assert again.returncode == 1
    assert "BROKEN: test_it.py::test_broken" in again.stdout
    assert "1 flaky, 1 broken" in again.stdout


@pytest.mark.parametrize(
    "tests",
    ["def test_", "import os\ndef test_it():\n    os._exit(3)\n"],
    ids=["that cannot be collected", "that end the process"],
)
def test_tests_fail_the_run(project, tests):
    project.write(tests)

    assert project.run_twice().returncode == 1


FIRST = "from pathlib import Path\nSEEN = Path(__file__).with_name('seen')\nfirst = not SEEN.exists()\nSEEN.touch()\n"


UNREAD = FIRST + "assert not first\ndef test_it(): pass\n"
STOPPED = (
    FIRST
    + """
import pytest

def test_it():
    assert not first

def test_next():
    pytest.exit("enough")

@pytest.mark.parametrize("n", range(8))
def test_more(n):
    pass
"""
)


@pytest.mark.parametrize(
    ("ends", "workers"),
    [(UNREAD, "0"), (STOPPED, "0"), (STOPPED, "2")],
    ids=["because a file was not collected", "in the midst", "in the midst of a worker"],
)
def test_an_aborted_run_fails_even_if_its_failures_pass_alone(project, ends, workers):
    project.write(ends)

    again = project.run_twice("-n", workers)

    assert again.returncode == 1, again.stdout
    assert "The tests did not finish" in again.stdout


def test_many_failures_are_not_run_again(project):
    project.write("import pytest\n@pytest.mark.parametrize('n', range(21))\ndef test_it(n):\n    assert False\n")

    again = project.run_twice()

    assert again.returncode == 1
    assert "21 tests failed" in again.stdout
    assert "again, alone" not in again.stdout
