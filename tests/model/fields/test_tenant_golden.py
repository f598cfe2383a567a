"""Bodies of queues, namespaces, quotas, keys and holds are read and refused as recorded in the golden files."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from horae.model.admission.queue import parse_queue
from horae.model.tenancy.namespace import parse_namespace, show_namespace
from horae.store.admission import lanes
from horae.store.tenancy.namespaces import _namespace, _row
from tests.model.fields.tenant_answers import shown_queue
from tests.model.fields.tenant_corpus import NOUNS, answer, bodies
from tests.model.fields.test_golden import spelled

GOLDEN = Path(__file__).parent / "golden_tenants"  # a file for each noun, with the outcome of one body per line
STORED = GOLDEN / "stored.jsonl"  # written once, by the first version: rows, and their shown forms


def lines(noun: str) -> Iterator[str]:
    return (spelled(answer(noun, body)) for body in bodies(noun))


def file(noun: str) -> Path:
    return GOLDEN / f"{noun.replace(' ', '_')}.jsonl"


@pytest.mark.parametrize("noun", NOUNS)
def test_bodies_are_read_and_refused_as_recorded(noun: str) -> None:
    were = file(noun).read_text().splitlines()
    differ = [
        f"{body!s:.300}\n  was {was}\n  is  {now}"
        for body, was, now in zip(bodies(noun), were, lines(noun), strict=True)
        if was != now
    ]
    assert len(were) > 50
    assert not differ, f"{len(differ)} bodies:\n" + "\n".join(differ[:20])


@pytest.mark.parametrize("line", STORED.read_text().splitlines())
def test_rows_of_the_first_version_keep_their_meaning(line: str) -> None:
    kept = json.loads(line)
    if "queue" in kept:
        queue = lanes.read_queue((1, 2, "a", *kept["queue"], "active", 0, 1, 1))
        assert shown_queue(queue.spec) == kept["shown"]
        assert shown_queue(parse_queue(kept["shown"])[0]) == kept["shown"]
    else:
        namespace = _namespace((2, "a", *kept["namespace"], "active", 0, 0))
        assert show_namespace(namespace) == kept["shown"]
        anew = _namespace((2, "a", *_row(parse_namespace(kept["shown"])), "active", 0, 0))
        assert show_namespace(anew) == kept["shown"]


if __name__ == "__main__":  # rewrite the files: python -m tests.model.fields.test_tenant_golden
    GOLDEN.mkdir(exist_ok=True)
    for each in NOUNS:
        file(each).write_text("".join(f"{line}\n" for line in lines(each)))
