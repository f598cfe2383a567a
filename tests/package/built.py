"""The package as users get it: built once per run, and environments with it."""

import fcntl
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from functools import cached_property
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


class Built:
    """The wheel and the sdist that `python -m build` created; the wheel is built from the sdist."""

    def __init__(self, folder: Path) -> None:
        (self.wheel,) = folder.glob("*.whl")
        (self.sdist,) = folder.glob("*.tar.gz")

    @cached_property
    def wheel_files(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    @cached_property
    def sdist_files(self) -> set[str]:
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    def read(self, name: str) -> str:
        """Return a file beside the code: METADATA, entry_points.txt."""
        (path,) = (path for path in self.wheel_files if path.endswith(f".dist-info/{name}"))
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.read(path).decode()

    @cached_property
    def metadata(self) -> Message:
        return Parser().parsestr(self.read("METADATA"))


def build(folder: Path, *flags: str) -> Built:
    """Build both once; other processes of the run reuse them."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            run([sys.executable, "-m", "build", *flags, "--outdir", folder, ROOT], cwd=folder)
    return Built(folder)


def run(command: list[object], **options: object) -> str:
    """Run a command and return its output; fail with the output."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=170, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Environment:
    """A virtual environment in a folder, without pip and without anything of this repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", folder])
        (self.packages,) = folder.glob("lib/python3*/site-packages")
        self.bin = folder / "bin"

    def pip(self, *arguments: object) -> str:
        """Run the pip of the tests for this environment."""
        return run([sys.executable, "-m", "pip", "--python", self.bin / "python", "-q", *arguments])

    def give(self, found: Distribution) -> None:
        """Install a distribution of the present environment by links.

        The links point to its packages, or to files of shared namespaces.
        """
        files = [file for file in found.files or () if ".." not in file.parts]
        whole = {file.parts[0] for file in files if file.parts[1:] == ("__init__.py",)}
        whole |= {file.parts[0] for file in files if file.parts[0].endswith(".dist-info")}
        for name in whole:
            os.symlink(found.locate_file(name), self.packages / name)
        for file in files:
            if file.parts[0] not in whole:
                place = self.packages / file
                place.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(file.locate(), place)

    def installed(self) -> set[str]:
        code = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
        return {canonicalize_name(name) for name in self.run("python", "-c", code, cwd=self.folder).split()}

    def run(self, program: str, *arguments: object, **options: object) -> str:
        return run([self.bin / program, *arguments], env=self.variables(), **options)

    def variables(self) -> dict[str, str]:
        """Return an environment without the caller's settings."""
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}


def needed(requirements: list[str]) -> Iterator[Distribution]:
    """Yield the distributions that these requirements need, without unused extras."""
    seen: set[tuple[str, str]] = set()
    left = [(Requirement(text), "") for text in requirements]
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        found = distribution(requirement.name)
        new = {(canonicalize_name(requirement.name), asked) for asked in ("", *requirement.extras)} - seen
        if (canonicalize_name(requirement.name), "") in new:
            yield found
        seen |= new
        left += [(Requirement(text), asked) for _, asked in new for text in found.requires or ()]
