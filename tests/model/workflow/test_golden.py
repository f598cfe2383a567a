"""Workflows are parsed, refused, stored and shown as recorded in the golden file."""

from pathlib import Path

from tests.model.fields.test_golden import differences, spelled
from tests.model.workflow.corpus import answer, workflows

GOLDEN = Path(__file__).parent / "golden.jsonl"  # one line per workflow: its outcome


def test_workflows_are_parsed_and_refused_as_in_the_golden_file() -> None:
    bodies = list(workflows())
    assert len(bodies) > 2500
    differ = differences(GOLDEN, bodies, answer)
    assert not differ, f"{len(differ)} workflows:\n" + "\n".join(differ[:20])


if __name__ == "__main__":  # write the file anew: python -m tests.model.workflow.test_golden
    GOLDEN.write_text("".join(f"{spelled(answer(body))}\n" for body in workflows()))
