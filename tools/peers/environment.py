"""Virtual environments from the package index, one per peer, below .peers; created once for a set of pins."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.peers.peer import FOLDER, PeerError

ROOT = FOLDER.parents[1] / ".peers"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq")
PATIENCE = 300.0  # seconds for one installation
VERSION = "import sys; print(*sys.version_info[:3], sep='.')"


class Environment:
    """An installed environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def python(self) -> Path:
        return self.program("python")

    @property
    def version(self) -> str:
        """The version of its Python."""
        return _version(self.python)

    def program(self, name: str) -> Path:
        return self._folder / "bin" / name

    def site(self) -> Path:
        """Return the folder of its packages."""
        return next(self._folder.glob("lib/python3.*/site-packages"))


def installed(
    source: Path, least: tuple[int, int] = (3, 11), root: Path = ROOT, python: Path | None = None
) -> Environment:
    """Return the environment for the pins in a folder; changed pins recreate it."""
    requirements = source / "requirements.txt"
    python = python or interpreter(source.name, least)
    folder = root / source.name
    stamp, wanted = folder / ".pins", _stamp(requirements, python)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run(source.name, [python, "-m", "venv", "--without-pip", folder])
        _run(source.name, [*PIP, "--python", folder / "bin" / "python", "install", "--requirement", requirements])
        stamp.write_text(wanted)
    return Environment(folder)


def interpreter(name: str, least: tuple[int, int]) -> Path:
    """Return a Python that is new enough: the present one, or else the oldest suitable one."""
    if sys.version_info >= least:
        return Path(sys.executable)
    found = next((path for path in _others(least) if _version(path)), None)
    if found is None:
        text = ".".join(map(str, least))
        raise PeerError(f"{name} needs Python {text} or newer, and there is none here: put python{text} on PATH.")
    return found


def _others(least: tuple[int, int]) -> Iterator[Path]:
    """Yield Pythons on PATH, or beside the present one, where version managers install them."""
    versions = [f"{least[0]}.{minor}" for minor in range(least[1], least[1] + 5)]
    for version in versions:
        if path := shutil.which(f"python{version}"):
            yield Path(path)
    for version in versions:
        yield from sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python3"))


def _stamp(requirements: Path, python: Path) -> str:
    return f"{_version(python)} {hashlib.sha256(requirements.read_bytes()).hexdigest()}"


def _version(python: Path) -> str:
    """Return the version, or an empty text if it does not run: a version manager's shim may lead nowhere."""
    return subprocess.run([python, "-c", VERSION], check=False, capture_output=True, text=True).stdout.strip()


def _run(name: str, command: list[str | Path]) -> None:
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": ""}
        )
    except subprocess.TimeoutExpired:
        raise PeerError(refusal(name, f"no end within {PATIENCE:g} s")) from None
    if done.returncode:
        raise PeerError(refusal(name, done.stderr or done.stdout))


def refusal(name: str, said: str) -> str:
    """Describe why a peer cannot be measured, with a remedy."""
    lines = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else "there was no output"
    return (
        f"{name} could not be installed from the package index: {last.rstrip('.')}. "
        f"Is the index reachable? Try `pip download -r tools/peers/{name}/requirements.txt`, "
        f"or omit it: --without {name}"
    )
