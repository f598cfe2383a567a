"""Settings: their sources, the order of precedence, and the errors for invalid values."""

from pathlib import Path

import pytest

from horae.config.build import engine_settings
from horae.config.limits import check_user, command_limits, machine_memory
from horae.config.load import load, misspelled
from horae.config.server_settings import DurationSetting
from horae.config.settings import TABLE
from horae.config.show import plain, rows
from horae.errors import BadInput


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def file(text: str) -> None:
    Path("horae.toml").write_text(text)


def test_defaults_apply_without_other_sources():
    loaded = load(environ={})

    assert loaded.settings.port == 8420
    assert loaded.settings.session_timeout == 15_000_000
    assert loaded.settings.store_url == "sqlite:///horae.db"
    assert {origin.kind for origin in loaded.origins.values()} == {"default"}


def test_flags_win_over_the_environment_over_the_file_over_defaults():
    file('port = 1\nhost = "file"\nlog_level = "error"\nretention = "7d"')
    environ = {"HORAE_PORT": "2", "HORAE_HOST": "environment"}

    loaded = load({"port": 3, "host": None}, environ)

    settings = loaded.settings
    assert (settings.port, settings.host, settings.log_level, str(settings.retention)) == (
        3,
        "environment",
        "error",
        "7d",
    )
    kinds = {name: loaded.origins[name].kind for name in ("port", "host", "log_level", "heartbeat")}
    assert kinds == {"port": "flag", "host": "environment", "log_level": "file", "heartbeat": "default"}


def test_lists_and_pairs_are_read_alike_from_all_sources():
    expected = (("a", "b"), {"gpu": "a100", "eu": ""})
    file('queues = ["a", "b"]\nlabels = {gpu = "a100", eu = ""}')
    given = [
        load(environ={}),
        load(environ={"HORAE_QUEUES": "a, b", "HORAE_LABELS": "gpu=a100,eu"}),
        load({"queues": ("a", "b"), "labels": ("gpu=a100", "eu")}, {}),
    ]
    assert [(loaded.settings.queues, loaded.settings.labels) for loaded in given] == [expected] * 3


def test_the_data_folder_holds_the_store_and_the_key():
    settings = load({"data": "state"}, {}).settings
    assert settings.store_url == "sqlite:///state/horae.db"
    assert settings.key_file == Path("state/admin.key")
    assert load({"data": "/srv/horae"}, {}).settings.store_url == "sqlite:////srv/horae/horae.db"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"HORAE_SESSION_TIMEOUT": "abc"}, "HORAE_SESSION_TIMEOUT=abc in the environment: 'abc' is not a length"),
        ({"HORAE_PORT": "70000"}, "HORAE_PORT=70000 in the environment: it takes a whole number of at most 65535."),
        (
            {"HORAE_LOG_LEVEL": "loud"},
            "HORAE_LOG_LEVEL=loud in the environment: it takes debug, info, warning or error.",
        ),
        ({"HORAE_LABELS": "=x"}, "HORAE_LABELS==x in the environment: '=x' has no name"),
        ({"HORAE_HEARTBEAT": "10s"}, "HORAE_HEARTBEAT=10s in the environment: a heartbeat of 10s is too long"),
        ({"HORAE_CONCURRENCY": "0"}, "HORAE_CONCURRENCY=0 in the environment: it takes a whole number of at least 1."),
        ({"HORAE_CONFIG": "gone.toml"}, "There is no settings file gone.toml, which HORAE_CONFIG names."),
    ],
)
def test_an_error_names_the_origin(environ, said):
    with pytest.raises(BadInput) as caught:
        load(environ=environ)
    assert caught.value.detail.startswith(said)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("por = 1", "horae.toml sets 'por', which is not a setting.", "Did you mean 'port'?"),
        ('port = "x"', "port = x in horae.toml: it takes a whole number.", "The port"),
        ("port = ", "horae.toml is not valid TOML", "`port = 8420`"),
        ("retention = -1", "retention = -1 in horae.toml: -1 is negative", "Write it as"),
    ],
)
def test_an_error_in_the_file_names_the_file(text, said, remedy):
    file(text)
    with pytest.raises(BadInput) as caught:
        load(environ={})
    assert caught.value.detail.startswith(said)
    assert remedy in caught.value.remedy


def test_an_error_in_a_flag_names_the_flag():
    with pytest.raises(BadInput, match=r"^--queue .*it takes a text"):
        load({"queues": (1,)}, {})


def test_a_bad_secret_is_not_repeated():
    file("admin_key = 12345")
    with pytest.raises(BadInput) as caught:
        load(environ={})
    assert "12345" not in str(caught.value)


def test_secrets_and_passwords_are_masked():
    environ = {"HORAE_KEY": "hk_secret", "HORAE_STORE": "postgresql://me:hunter2@db/horae"}
    shown = {row["name"]: row["value"] for row in rows(load(environ=environ))}

    assert shown["key"] == "***"
    assert shown["admin_key"] == ""
    assert shown["store"] == "postgresql://me:***@db/horae"
    assert "hk_secret" not in repr(load(environ=environ))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:p@ss@db/horae", "postgresql://me:***@db/horae"),
        ("postgresql://me:p/w?x@db/horae", "postgresql://me:***@db/horae"),
        ("postgresql://me@db:5432/horae?password=p@ss&x=1", "postgresql://me@db:5432/horae?password=***&x=1"),
        (
            "postgresql://db/horae?x=1&sslpassword=s&passfile=/p",
            "postgresql://db/horae?x=1&sslpassword=***&passfile=***",
        ),
        ("postgresql://me@db:5432/horae", "postgresql://me@db:5432/horae"),
    ],
)
def test_passwords_of_any_characters_are_masked_anywhere_in_a_url(url, shown):
    assert plain(url) == shown


def test_a_settings_file_that_cannot_be_read_is_reported(monkeypatch):
    file("port = 1")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(BadInput, match=r"horae\.toml cannot be read: Permission denied"):
        load(environ={})


def test_every_setting_has_a_meaning_and_its_default_reads_back():
    for name, setting in TABLE.items():
        assert setting.meaning.endswith("."), name
        if not setting.is_secret and setting.default not in ("", {}):
            assert getattr(load({name: plain(setting.default)}, {}).settings, name) == setting.default


def test_the_engine_gets_its_settings():
    environ = {"HORAE_SESSION_TIMEOUT": "3s", "HORAE_HEARTBEAT": "1s", "HORAE_PORT": "9000"}
    engine = engine_settings(load(environ=environ).settings)
    assert (engine.session_timeout, engine.heartbeat, engine.url) == (3_000_000, 1_000_000, "http://127.0.0.1:9000")


def test_port_zero_gives_no_url():
    assert engine_settings(load(environ={"HORAE_PORT": "0"}).settings).url == ""
    advertised = {"HORAE_PORT": "0", "HORAE_ADVERTISE": "http://jobs.example"}
    assert engine_settings(load(environ=advertised).settings).url == "http://jobs.example"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HORAE_COMMAND_MEMORY": "50%"}, {"memory": machine_memory() // 2}),
        ({"HORAE_COMMAND_MEMORY": "2GiB", "HORAE_COMMAND_FILES": "99"}, {"memory": 2 << 30, "files": 99}),
        ({"HORAE_COMMAND_OUTPUT": "0", "HORAE_COMMAND_PROCESSES": "0"}, {"output": None, "processes": None}),
        ({"HORAE_COMMAND_CPU": "1m", "HORAE_COMMAND_FILE_SIZE": "5MB"}, {"cpu": 60_000_000, "file_size": 5_000_000}),
    ],
)
def test_limits_of_commands(environ, expected):
    usual = command_limits(load(environ={}).settings)
    assert (usual.memory, usual.processes, usual.output) == (machine_memory() * 80 // 100, 1024, 1 << 30)
    limits = command_limits(load(environ=environ).settings)
    assert {name: getattr(limits, name) for name in expected} == expected


@pytest.mark.parametrize("text", ["0%", "101%", "much%", "much", "-1"])
def test_a_limit_that_is_not_an_amount_is_refused(text):
    with pytest.raises(BadInput, match="command_memory"):
        command_limits(load(environ={"HORAE_COMMAND_MEMORY": text}).settings)


def test_only_root_runs_commands_as_others(monkeypatch):
    settings = load(environ={"HORAE_COMMAND_USER": "nobody"}).settings
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert check_user(settings) == "nobody"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BadInput, match="does not run as root"):
        check_user(settings)


def test_a_duration_is_shown_as_people_write_it():
    assert str(DurationSetting(5_400_000_000)) == "1h30m"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("HORAE_PORT=abc", "HORAE_PORT=abc in the environment: it takes a whole number."),
        ("HORAE_LOG_LEVEL=loud", "HORAE_LOG_LEVEL=loud in the environment: it takes debug, info, warning or error."),
        ("HORAE_SPOT=maybe", "HORAE_SPOT=maybe in the environment: it takes true or false."),
    ],
)
def test_the_expected_value_of_a_setting_is_described_in_words(variable, said):
    with pytest.raises(BadInput) as refused:
        load(environ=dict([variable.split("=")]))
    assert refused.value.detail == said


def test_names_with_letters_in_another_order_are_suggested_first():
    file("prot = 3")
    with pytest.raises(BadInput, match="'prot', which is not a setting") as refused:
        load(environ={})
    assert refused.value.remedy == "Did you mean 'port'?"


def test_misspelled_variables_are_found_without_those_set_for_commands():
    environ = {"HORAE_PROT": "1", "HORAE_ULR": "x", "HORAE_ATTEMPT": "1", "HORAE_CONFIG": "f", "PORT": "1"}
    assert misspelled(environ) == {"HORAE_PROT": "HORAE_PORT", "HORAE_ULR": "HORAE_URL"}


def test_a_setting_that_was_renamed_is_refused_with_its_new_name(tmp_path):
    file = tmp_path / "horae.toml"
    file.write_text('session_idle = "1h"\n')
    for given in ({"environ": {}, "file": file}, {"environ": {"HORAE_SECRET_KEY_FILE": "k"}}):
        with pytest.raises(BadInput, match=r"is called (sign_in_idle|master_key_file) now") as refused:
            load(**given)
        assert refused.value.fields["field"] in TABLE
    assert misspelled({"HORAE_SECRET_KEY_FILE": "k"}) == {}
