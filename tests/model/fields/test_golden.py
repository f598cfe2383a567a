"""Definitions are read and refused as recorded in the golden file."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.model.fields.corpus import answer, definitions

GOLDEN = Path(__file__).parent / "golden.jsonl"  # the outcome of one definition per line


def test_definitions_are_read_and_refused_as_recorded() -> None:
    bodies = list(definitions())
    assert len(bodies) > 3000
    differ = differences(GOLDEN, bodies, answer)
    assert not differ, f"{len(differ)} definitions:\n" + "\n".join(differ[:20])


def differences(golden: Path, bodies: Sequence[Any], answer: Callable[[Any], list[Any]]) -> list[str]:
    """Return the differences from a golden file: the body, the recorded outcome, and the current one."""
    lines = golden.read_text().splitlines()
    return [
        f"{body!s:.300}\n  was {line}\n  is  {now}"
        for body, line in zip(bodies, lines, strict=True)
        if (now := spelled(answer(body))) != line
    ]


def spelled(found: list[object]) -> str:
    return json.dumps(json.loads(msgspec.json.encode(found)), sort_keys=True, ensure_ascii=False)


if __name__ == "__main__":  # rewrite the file: python -m tests.model.fields.test_golden
    GOLDEN.write_text("".join(f"{spelled(answer(body))}\n" for body in definitions()))
