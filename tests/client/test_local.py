"""Discovery of the server and the key."""

import pytest

from horae.client.local import chosen_namespace, is_loopback, resolve
from horae.errors import BadInput


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HORAE_URL", "HORAE_KEY", "HORAE_DATA", "HORAE_ADMIN_KEY", "HORAE_CONFIG", "HORAE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "admin.key").write_text("hk_local\n")


def test_the_key_is_found_on_the_same_machine():
    assert resolve() == (["http://127.0.0.1:8420"], "hk_local")


def test_the_key_of_this_machine_is_never_sent_elsewhere():
    assert resolve("https://horae.example.com") == (["https://horae.example.com"], "")
    assert resolve("http://127.0.0.1:1,http://horae.example.com")[1] == ""


def test_arguments_override_settings(monkeypatch):
    monkeypatch.setenv("HORAE_URL", "http://a:1,http://b:2")
    monkeypatch.setenv("HORAE_KEY", "hk_env")
    assert resolve() == (["http://a:1", "http://b:2"], "hk_env")
    assert resolve("http://c:3", "hk_arg") == (["http://c:3"], "hk_arg")


def test_the_data_folder_may_be_elsewhere(monkeypatch, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "admin.key").write_text("hk_state")
    monkeypatch.setenv("HORAE_DATA", "state")
    assert resolve()[1] == "hk_state"


def test_a_preset_key_is_found_in_the_same_environment(monkeypatch):
    monkeypatch.setenv("HORAE_ADMIN_KEY", "preset")
    assert resolve()[1] == "preset"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8420", "ftp://a", "http://", "nonsense", ",", "http://[::1", "http://a:84200", "http://a:b", "http://a:0",
        "http://a\x01",
    ],
)  # fmt: skip
def test_an_invalid_url_is_refused(url):
    with pytest.raises(BadInput, match="is not a server's URL"):
        resolve(url)


def test_an_empty_list_of_urls_is_refused(monkeypatch):
    monkeypatch.setenv("HORAE_URL", ",")
    with pytest.raises(BadInput, match="is not a server's URL"):
        resolve()


def test_a_key_file_that_is_not_text_counts_as_absent(tmp_path):
    (tmp_path / "admin.key").write_bytes(b"\xff")
    assert resolve()[1] == ""


def test_the_end_of_a_line_is_no_part_of_a_key(monkeypatch):
    monkeypatch.setenv("HORAE_KEY", "hk_env\n")
    assert resolve()[1] == "hk_env"


def test_loopback():
    assert [is_loopback(f"http://{host}") for host in ("localhost:1", "127.0.0.2", "[::1]:8420")] == [True] * 3
    assert [is_loopback(f"http://{host}") for host in ("10.0.0.1", "example.com", "localhost.evil.com")] == [False] * 3


def test_the_namespace_is_the_keys_own_unless_one_is_chosen(monkeypatch):
    assert chosen_namespace() == ""
    monkeypatch.setenv("HORAE_NAMESPACE", "billing")
    assert (chosen_namespace(), chosen_namespace("team"), chosen_namespace("")) == ("billing", "team", "")
