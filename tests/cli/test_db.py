"""`horae db`: on real stores."""

import json
from pathlib import Path

import pytest

from horae.store.sqlite.library import VERSION
from tests.cli.fake_api import run


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HORAE_STORE", "HORAE_DATA"):
        monkeypatch.delenv(name, raising=False)


def test_upgrade_makes_a_store_and_version_tells():
    assert run(None, "db", "version").exit_code == 3
    assert not Path("horae.db").exists()
    assert "from nothing to 0001" in run(None, "db", "upgrade").stdout
    assert "is at 0001 already" in run(None, "db", "upgrade").stdout
    assert json.loads(run(None, "db", "version", "-o", "json").stdout) == {
        "store": "0001",
        "program": "0001",
        "kind": "sqlite",
        "version": VERSION,
        "settings": {"library": VERSION, "journal_mode": "wal", "synchronous": "2"},
    }
    assert f"SQLite {VERSION} at revision 0001" in run(None, "db", "version").stdout


def test_a_store_is_backed_up_and_restored():
    run(None, "db", "upgrade")
    assert "Wrote horae.backup" in run(None, "db", "backup", "horae.backup").stdout
    restored = run(None, "db", "restore", "horae.backup", "--data", "elsewhere", "-o", "json")
    assert json.loads(restored.stdout)["epoch"] > 1
    assert run(None, "db", "version", "--data", "elsewhere").exit_code == 0


def test_replacing_a_store_is_asked_for():
    run(None, "db", "upgrade")
    run(None, "db", "backup", "horae.backup")
    refused = run(None, "db", "restore", "horae.backup", "--replace", input="n\n")
    assert refused.exit_code == 1
    assert "is replaced by horae.backup" in refused.stderr
    assert run(None, "db", "restore", "horae.backup", "--replace", "--yes").exit_code == 0


def test_what_is_no_backup_is_refused():
    Path("notes.txt").write_text("hello")
    assert run(None, "db", "restore", "notes.txt").exit_code == 2
    assert run(None, "db", "restore", "gone").exit_code == 3


def test_everything_moves_to_postgresql(postgres_url):
    run(None, "db", "upgrade")
    moved = run(None, "db", "migrate", "--from", "sqlite:///horae.db", "--to", postgres_url)
    assert moved.exit_code == 0, moved.stderr
    assert "both stores hold the same" in moved.stdout
    assert "namespaces" in moved.stdout


def test_the_store_of_the_settings_is_filled_when_no_other_is_named(postgres_url):
    run(None, "db", "upgrade")
    moved = run(None, "db", "migrate", "--from", "sqlite:///horae.db", env={"HORAE_STORE": postgres_url})
    assert "both stores hold the same" in moved.stdout
    assert run(None, "db", "migrate", "--from", "sqlite:///horae.db").exit_code == 2


def test_moving_from_nowhere_makes_nothing(tmp_path):
    assert run(None, "db", "migrate", "--from", "sqlite:///gone.db", "--to", "sqlite:///new.db").exit_code == 3
    assert list(tmp_path.iterdir()) == []
