"""Triggers and calendars are read, shown and refused as recorded in the golden files."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.model.fields.trigger_answers import answer
from tests.model.fields.trigger_corpus import calendars, triggers

GOLDEN = {noun: Path(__file__).parent / f"golden_{noun}.jsonl" for noun in ("triggers", "calendars")}
BODIES = {"triggers": triggers, "calendars": calendars}


@pytest.mark.parametrize("noun", GOLDEN)
def test_bodies_are_read_and_refused_as_recorded(noun: str) -> None:
    bodies = list(BODIES[noun]())
    lines = GOLDEN[noun].read_text().splitlines()
    assert len(bodies) == len(lines) > 1000
    differ = [
        f"{body!s:.300}\n  was {line:.900}\n  is  {now:.900}"
        for body, line in zip(bodies, lines, strict=True)
        if (now := spelled(answer(noun, body))) != line
    ]
    assert not differ, f"{len(differ)} {noun}:\n" + "\n".join(differ[:20])


def spelled(found: list[object]) -> str:
    return json.dumps(json.loads(msgspec.json.encode(found)), sort_keys=True, ensure_ascii=False)


if __name__ == "__main__":  # rewrite the files: python -m tests.model.fields.test_trigger_golden
    for noun, path in GOLDEN.items():
        path.write_text("".join(f"{spelled(answer(noun, body))}\n" for body in BODIES[noun]()))
