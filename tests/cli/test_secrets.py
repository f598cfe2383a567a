"""`horae secrets`: values come from the input, a file or a prompt, and are never shown."""

import json

from horae.cli.tenancy.secrets import set_
from tests.cli.fake_api import FakeApi, page, run

SECRET = {"name": "db", "version": 1, "createdAt": "2027-01-15T08:00:00Z", "updatedAt": "2027-01-15T08:00:00Z"}
ROUTES = {
    "PUT /secrets/db": SECRET, "GET /secrets": page(SECRET), "GET /secrets/db": {**SECRET, "jobs": ["report"]},
    "DELETE /secrets/db": None, "POST /master-key/rotation": {"resealed": 2, "current": 1},
}  # fmt: skip


def test_a_value_comes_from_the_input_or_a_file_and_not_from_an_argument(tmp_path):
    api = FakeApi(ROUTES)
    (tmp_path / "pem").write_text("line one\nline two\n")

    typed = run(api, "secrets", "set", "db", input="hunter22\n")
    filed = run(api, "secrets", "set", "db", "--file", str(tmp_path / "pem"))

    assert [request.body for request in api.requests] == [{"value": "hunter22"}, {"value": "line one\nline two"}]
    assert "secret://db" in typed.stdout
    assert "hunter22" not in typed.output
    assert "line one" not in filed.output
    assert [param.name for param in set_.params if param.param_type_name == "argument"] == ["name"]


def test_a_binary_or_missing_file_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "Encode it" in run(FakeApi(ROUTES), "secrets", "set", "db", "--file", str(tmp_path / "binary")).stderr
    assert run(FakeApi(ROUTES), "secrets", "set", "db", "--file", str(tmp_path / "none")).exit_code == 2


def test_secrets_are_listed_shown_deleted_and_sealed_again():
    api = FakeApi(ROUTES)
    assert run(api, "secrets", "list").stdout.splitlines()[1].split()[:2] == ["db", "1"]
    assert "report" in run(api, "secrets", "show", "db").stdout
    assert run(api, "secrets", "delete", "db", "--force").exit_code == 0
    assert api.requests[-1].query == {"force": "true"}
    assert "Sealed 2 secrets again" in run(api, "master-key", "rotate").stdout
    assert json.loads(run(api, "master-key", "rotate", "-o", "json").stdout) == {"resealed": 2, "current": 1}
