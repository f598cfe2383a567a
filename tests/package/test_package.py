"""The wheel and the sdist are complete, contain nothing else, and run with only their requirements installed."""

import ipaddress
import re
import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import urlopen

import msgspec
import pytest
from packaging.utils import canonicalize_name

import horae
from tests.house.test_tree import ROOT
from tests.package.built import Built, Environment, build, needed
from tests.waiting import eventually_sync

EXTRAS = {"calendar", "notify", "oidc", "otel", "postgres", "s3"}


def package_files() -> set[str]:
    """Return every file below src that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def test_the_wheel_holds_the_package_and_nothing_else(built: Built):
    own = {name for name in built.wheel_files if ".dist-info/" not in name}

    assert own == {name.removeprefix("src/") for name in package_files()}
    assert {"horae/py.typed", "horae/ui/index.html", "horae/ui/vendor/LICENCES.txt"} <= own
    assert not any(name.startswith("horae/bench/") for name in own)


def test_the_sdist_holds_the_source_of_the_package_and_nothing_else(built: Built):
    files = {name for name in built.sdist_files if name}
    beside = {"PKG-INFO", "pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", ".gitignore"}

    assert files == package_files() | beside


def test_the_metadata_is_complete(built: Built):
    metadata = built.metadata

    assert (metadata["Name"], metadata["Version"]) == ("horae", horae.__version__)
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert metadata.get_all("License-File") == ["LICENSE", "src/horae/ui/vendor/LICENCES.txt"]
    assert "scheduler" in metadata["Summary"]
    assert metadata["Author"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(
        metadata.get_all("Classifier")
    )
    assert set(metadata.get_all("Provides-Extra")) == EXTRAS
    assert built.read("entry_points.txt").split("\n")[:2] == ["[console_scripts]", "horae = horae.cli.main:main"]


def test_every_address_in_the_metadata_is_public(built: Built):
    for line in built.metadata.get_all("Project-URL", []):
        address = urlsplit(line.partition(", ")[2])
        assert address.scheme == "https"
        assert "." in (address.hostname or "")
        with pytest.raises(ValueError, match="does not appear to be"):
            ipaddress.ip_address(address.hostname or "")


def test_the_installed_package_runs_a_job_and_passes_the_doctor(built: Built, tmp_path):
    alone = Environment(tmp_path / "alone")
    alone.pip("install", "--no-deps", "--no-index", "--no-compile", built.wheel)
    for found in needed(built.metadata.get_all("Requires-Dist")):
        alone.give(found)
    alone.pip("check")

    check_it_runs(alone, tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_separately_built_distributions_are_installed_by_pip_and_run(tmp_path, kind):
    built = build(tmp_path / "dist")
    alone = Environment(tmp_path / "alone")
    alone.pip("install", getattr(built, kind))

    expected = {canonicalize_name(found.name) for found in needed(built.metadata.get_all("Requires-Dist"))}
    assert alone.installed() == {"horae", *expected}
    check_it_runs(alone, tmp_path)


def check_it_runs(alone: Environment, tmp_path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    assert alone.run("horae", "--version", cwd=folder) == f"horae {horae.__version__}\n"
    with up(alone, folder) as url:
        asked = ("demo-primes", "--param", "up_to=1000", "--wait", "--server", url, "-o", "json")
        ended = msgspec.json.decode(alone.run("horae", "jobs", "trigger", *asked, cwd=folder))

        assert (ended["status"], ended["result"]) == ("success", {"primes": 168, "largest": 997})
        assert "fail" not in alone.run("horae", "doctor", "--server", url, cwd=folder)
        with urlopen(url, timeout=10) as page:
            assert "<title>" in page.read().decode()


@contextmanager
def up(alone: Environment, folder):
    """Run `horae up --demo` until the block ends; yield its URL."""
    log = folder / "up.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [alone.bin / "horae", "up", "--demo", "--port", "0"],
            cwd=folder, env=alone.variables(), stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def said() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return re.search(r"is up at (\S+)", log.read_text())

    try:
        yield eventually_sync(said, within=20)[1]
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
