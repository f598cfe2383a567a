"""Text that no file of the repository may contain."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENDORED = "src/horae/ui/vendor/"

# Built from parts, so that this file does not match itself.
MACHINE_PATHS = re.compile(rf"(?<![\w.*-])/(?:wor{'k'}|roo{'t'})/|{re.escape(str(ROOT))}\b")
REGISTRIES = re.compile(
    "|".join(map(re.escape, ["pypi" + ".org", "python" + "hosted", "deb" + ".debian.org", "registry" + ".npmjs"]))
)
UNFINISHED = re.compile(rf"\b(?:TO{'DO'}|FIX{'ME'})\b")


@cache
def texts() -> dict[str, str]:
    """Return every text file that git tracks or would add, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    contents = {path: path.read_bytes() for path in paths if path.is_file()}
    return {str(p.relative_to(ROOT)): c.decode(errors="replace") for p, c in contents.items() if b"\0" not in c}


def found(pattern: re.Pattern[str], *, leave_out: str | None = None) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts().items()
        if not (leave_out and name.startswith(leave_out)) and pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_contains_a_path_of_a_machine():
    assert found(MACHINE_PATHS) == []


def test_no_file_names_a_private_package_registry():
    assert found(REGISTRIES) == []


def test_no_file_contains_a_todo():
    assert found(UNFINISHED, leave_out=VENDORED) == []


def test_no_file_contains_conflict_markers():
    assert found(re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)) == []


def test_the_patterns_match_their_examples():
    assert MACHINE_PATHS.search(f"cd /roo{'t'}/x")
    assert not MACHINE_PATHS.search("https://example.com/a/work/b")
    assert REGISTRIES.search("https://pypi" + ".org/simple")
    assert UNFINISHED.search(f"# TO{'DO'}: later")
