"""The package's metadata, its lock files and its two commands."""

import os
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?P<rest>(?:.*\\\n)*.*)$", re.MULTILINE)
LOCKS = ("requirements.lock", "requirements-dev.lock")


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(m["name"]): m["version"] for m in PIN.finditer((ROOT / lock).read_text())}


def wanted(lock: str) -> list[Requirement]:
    tables = project()
    extras = tables["project"]["optional-dependencies"]
    lines = [*tables["project"]["dependencies"], *(line for extra in extras.values() for line in extra)]
    lines += tables["dependency-groups"]["build"]
    if lock == "requirements-dev.lock":
        lines += tables["dependency-groups"]["dev"]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_contains_the_requirements_of_the_project(lock):
    locked = pins(lock)
    unmet = [str(r) for r in wanted(lock) if locked.get(canonicalize_name(r.name), "") not in r.specifier]
    assert unmet == [], "Run `make lock`."


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_no_url(lock):
    text = (ROOT / lock).read_text()
    entries = list(PIN.finditer(text))
    assert entries
    assert [m["name"] for m in entries if "--hash=sha256:" not in m["rest"]] == []
    assert [line for line in text.splitlines() if "://" in line or "index" in line.split("#")[0]] == []


def test_both_locks_agree():
    running, developing = map(pins, LOCKS)
    assert {name: version for name, version in running.items() if developing.get(name) != version} == {}


def test_scripts_are_executable():
    assert [
        n for n in (".ci/run", "tools/lock", "tools/browser", "tools/pgbouncer") if not os.access(ROOT / n, os.X_OK)
    ] == []


TARGETS = [
    "up",
    "test",
    "lint",
    "dist",
    "bench",
    "scale",
    "bench-peers",
    "prove",
    "prove-frameworks",
    "prove-openapi",
    "lock",
    "clean",
]


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_the_documented_targets(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_it_is_apache_licensed_and_typed():
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert project()["project"]["license"] == "Apache-2.0"
    assert (ROOT / "src" / "horae" / "py.typed").exists()
