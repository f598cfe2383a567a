"""A pytest plugin: write the output of each failed test to the file that FAILED_TESTS names, for `tools/retry`."""

import json
import os
from pathlib import Path

import pytest

FILE = "FAILED_TESTS"


class Failures:
    """Collects failed reports in the controlling process."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.outputs: dict[str, str] = {}
        self.tests: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests.add(report.nodeid)
        if report.failed:
            sections = (f"--- {title} ---\n{text}" for title, text in report.sections)
            output = "\n".join((f"{report.when}: {report.longreprtext}", *sections))
            self.outputs[report.nodeid] = "\n".join(filter(None, (self.outputs.get(report.nodeid), output)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outputs[report.nodeid] = report.longreprtext

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write nothing about a run that ended early: its failed tests may pass alone while others never ran."""
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ended and len(self.tests) == session.testscollected:
            self.file.write_text(json.dumps(self.outputs))


def pytest_configure(config: pytest.Config) -> None:
    if (file := os.environ.get(FILE)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(file)))
