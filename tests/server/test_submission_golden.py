"""Bodies of submissions are read and refused as recorded in the golden file."""

from pathlib import Path

from tests.model.fields.test_golden import differences, spelled
from tests.server.submissions import answer, submissions

GOLDEN = Path(__file__).parent / "submissions.jsonl"  # one line for each body, with its answers


def test_submissions_are_read_and_refused_as_they_were() -> None:
    bodies = list(submissions())
    assert len(bodies) > 2900
    differ = differences(GOLDEN, bodies, answer)
    assert not differ, f"{len(differ)} bodies:\n" + "\n".join(differ[:20])


if __name__ == "__main__":  # rewrite the file: python -m tests.server.test_submission_golden
    GOLDEN.write_text("".join(f"{spelled(answer(body))}\n" for body in submissions()))
