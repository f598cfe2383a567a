"""Bodies of features are read and refused as recorded in the golden file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae.features.alerts.model.channel import join_parts
from horae.features.alerts.model.channel import redacted as places
from horae.features.alerts.model.rule import RULE, AnyRule
from horae.features.alerts.store.rules import StoredChannelSpec
from tests.model.fields.feature_corpus import SHAPES, answer, bodies
from tests.model.fields.test_golden import spelled

GOLDEN = Path(__file__).parent / "golden_features"  # a file for each noun, with the outcome of one body per line


def lines(noun: str) -> Iterator[str]:
    return (spelled(answer(noun, body)) for body in bodies(noun))


def file(noun: str) -> Path:
    return GOLDEN / f"{noun.replace(' ', '_')}.jsonl"


@pytest.mark.parametrize("noun", SHAPES)
def test_bodies_of_features_are_read_and_refused_as_recorded(noun: str) -> None:
    were = file(noun).read_text().splitlines()
    differ = [
        f"{body!s:.300}\n  was {was}\n  is  {now}"
        for body, was, now in zip(bodies(noun), were, lines(noun), strict=True)
        if was != now
    ]
    assert len(were) > 80
    assert not differ, f"{len(differ)} bodies:\n" + "\n".join(differ[:20])


def accepted(noun: str) -> list[list[Any]]:
    found = [json.loads(line) for line in file(noun).read_text().splitlines()]
    return [parts for verdict, *parts in found if verdict == "accepted"]


def test_stored_rules_keep_their_meaning() -> None:
    for stored, shown in accepted("rule"):
        rule = msgspec.convert(stored, AnyRule)
        assert RULE.write(rule) == shown


def test_stored_channels_keep_their_meaning() -> None:
    for stored, shown, references in accepted("channel"):
        kept = msgspec.convert(stored, StoredChannelSpec)
        channel = join_parts(kept.kind, kept.description, kept.public, stored.get("private", {}))
        assert (places(channel), list(channel.references)) == (shown, references)


if __name__ == "__main__":  # rewrite the files: python -m tests.model.fields.test_feature_golden
    GOLDEN.mkdir(exist_ok=True)
    for each in SHAPES:
        file(each).write_text("".join(f"{line}\n" for line in lines(each)))
