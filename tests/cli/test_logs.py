"""The logs of long-running commands and their formats."""

import json
import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog

from horae.cli.installation.logs import configure_logs
from horae.config.settings import Settings
from horae.worker.logs import capture


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def written(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def configured(**settings: str) -> None:
    logging.getLogger().handlers.clear()  # the test runner's own
    configure_logs(Settings(**settings))  # type: ignore[arg-type]


def broken() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        structlog.get_logger("horae.test").exception("step failed", service="x")
        logging.getLogger("library").exception("it said %s", "no")


def test_every_line_is_json_and_starts_with_time_level_and_event(capsys: pytest.CaptureFixture[str]):
    configured(log_format="json")
    structlog.get_logger("horae.test").info("attempt ended", job="a", attempt=1)
    logging.getLogger("library").warning("cannot reach %s", "it")
    logging.getLogger("library").info("not worth a line")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("an odd thing", stacklevel=1)
    broken()

    lines = [json.loads(line) for line in written(capsys)]

    assert [list(line)[:3] for line in lines] == [["timestamp", "level", "event"]] * 5
    assert {**lines[0], "timestamp": ""} == {
        "timestamp": "", "level": "info", "event": "attempt ended", "job": "a", "attempt": 1,
    }  # fmt: skip
    assert (lines[1]["level"], lines[1]["event"], lines[1]["logger"]) == ("warning", "cannot reach it", "library")
    assert "an odd thing" in lines[2]["event"]
    for line in lines[3:]:
        assert line["level"] == "error"
        assert line["exception"].endswith("ValueError: boom")


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]):
    configured(log_format="text")
    structlog.get_logger("horae.test").info("attempt ended", job="a")
    logging.getLogger("library").warning("cannot reach it")
    own, library = written(capsys)
    assert own.endswith("[info     ] attempt ended job=a")
    assert "[warning  ] cannot reach it" in library


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_set(capsys: pytest.CaptureFixture[str], level: str, count: int):
    configured(log_format="json", log_level=level)
    log = structlog.get_logger("horae.test")
    for say in (log.debug, log.info, log.warning, log.error):
        say("something")
    assert len(written(capsys)) == count


def test_logs_of_functions_are_kept_from_info_on_and_masked_tracebacks_stay_in_their_line(
    capsys: pytest.CaptureFixture[str],
):
    configured(log_format="json")
    capture.install()
    try:
        assert logging.getLogger("a.job").isEnabledFor(logging.INFO)
        assert not logging.getLogger("a.job").isEnabledFor(logging.DEBUG)
    finally:
        capture.uninstall()
    record = logging.makeLogRecord({"name": "a.job", "levelno": logging.ERROR, "levelname": "ERROR", "msg": "bad"})
    record.exc_text = "Traceback: ***"
    setattr(record, capture.RECORD_ATTRIBUTE, {"execution": "e", "job": "j", "attempt": 1})
    logging.getLogger().handle(record)
    line = json.loads(*written(capsys))
    assert line["exception"] == "Traceback: ***"
    assert (line["execution"], line["job"], line["attempt"]) == ("e", "j", 1)
