"""Bodies of features are read and refused as they were when the golden file was written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.fields.feature_corpus import SHAPES, answer, bodies
from tests.model.fields.test_golden import spelled

GOLDEN = Path(__file__).parent / "golden_features"  # a file for each noun, a line for each body: what becomes of it


def lines(noun: str) -> Iterator[str]:
    return (spelled(answer(noun, body)) for body in bodies(noun))


def file(noun: str) -> Path:
    return GOLDEN / f"{noun.replace(' ', '_')}.jsonl"


@pytest.mark.parametrize("noun", SHAPES)
def test_bodies_of_features_are_read_and_refused_as_they_were(noun: str) -> None:
    were = file(noun).read_text().splitlines()
    differ = [
        f"{body!s:.300}\n  was {was}\n  is  {now}"
        for body, was, now in zip(bodies(noun), were, lines(noun), strict=True)
        if was != now
    ]
    assert len(were) > 80
    assert not differ, f"{len(differ)} bodies:\n" + "\n".join(differ[:20])


if __name__ == "__main__":  # write the files anew: python -m tests.model.fields.test_feature_golden
    GOLDEN.mkdir(exist_ok=True)
    for each in SHAPES:
        file(each).write_text("".join(f"{line}\n" for line in lines(each)))
