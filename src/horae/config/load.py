"""Load the settings from flags, the environment, horae.toml and defaults, in this order of precedence.

Errors name the origin of the wrong value.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from horae.config.server_settings import DurationSetting, Secret
from horae.config.settings import RENAMED, TABLE, Setting, Settings
from horae.errors import BadInput
from horae.feature import enabled
from horae.model.base.duration import parse_duration
from horae.model.tenancy.master_key import read_master_keys

FILE = "horae.toml"
FILE_VARIABLE = "HORAE_CONFIG"
PREFIX = "HORAE_"
# The names, without the prefix, of variables that a worker sets for its commands, and of others that are not settings.
_GIVEN = ("EXECUTION_ID", "JOB", "ATTEMPT", "TOKEN", "SCHEDULED_AT", "OUTPUT", "CHECKPOINT", "ARTIFACTS")
_OTHERS = ("CONFIG", "DEBUG", "PROVE", "COMPLETE", "TEST_FOLDER")
_RENAMED = tuple(name.upper() for name in RENAMED)  # these are refused, with a message that has the new name
_KNOWN = frozenset(
    {*(setting.variable for setting in TABLE.values()), *(PREFIX + name for name in _GIVEN + _OTHERS + _RENAMED)}
)

# The flags of settings whose flag has another name.
FLAGS = {
    "url": "--server",
    "queues": "--queue",
    "labels": "--label",
    "resources": "--resource",
    "worker_name": "--name",
}

OriginKind = Literal["flag", "environment", "file", "default"]


class Origin(Struct, frozen=True):
    """The origin of a value. `text` is for users, such as `--port`, `HORAE_PORT in the environment` or `horae.toml`."""

    kind: OriginKind
    text: str


class LoadedSettings(Struct, frozen=True):
    """The settings, and the origin of each by name."""

    settings: Settings
    origins: dict[str, Origin]
    file: Path | None = None  # the settings file that was read


class RawValue(Struct, frozen=True):
    """A value as a user wrote it, with its origin."""

    value: Any
    origin: Origin

    def refuse(self, setting: Setting, reason: str, remedy: str = "") -> BadInput:
        """Return the error that names this value with its origin, and says why it is refused."""
        shown = "***" if setting.is_secret else str(self.value)
        where = {
            "flag": f"{self.origin.text} {shown}",
            "environment": f"{setting.variable}={shown} in the environment",
            "file": f"{setting.name} = {shown} in {self.origin.text}",
            "default": f"{setting.name} = {shown}",
        }[self.origin.kind]
        return BadInput(f"{where}: {reason}", remedy or setting.meaning, field=setting.name)


def load(
    flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None, file: Path | None = None
) -> LoadedSettings:
    """Read each setting from the source with the highest precedence that has it.

    A flag that is None or empty counts as absent. The settings file is `file`, or else the file that HORAE_CONFIG
    names, and must exist. If neither is given, ./horae.toml is read if it exists.
    """
    environ = os.environ if environ is None else environ
    path = _file(environ, file)
    found = {**_from_file(path), **_from_environment(environ), **_from_flags(flags or {})}
    values = {name: _read(TABLE[name], given) for name, given in found.items()}
    settings = Settings(**values)
    default = Origin("default", "default")
    origins = {name: found[name].origin if name in found else default for name in TABLE}
    _check_rhythm(settings, found)
    _check_master_keys(settings, found)
    _check_features(settings, found)
    return LoadedSettings(settings, origins, path)


def _file(environ: Mapping[str, str], file: Path | None) -> Path | None:
    named = file or (Path(environ[FILE_VARIABLE]) if environ.get(FILE_VARIABLE) else None)
    if named is None:
        return Path(FILE) if Path(FILE).is_file() else None
    if not named.is_file():
        how = "--config" if file else FILE_VARIABLE
        raise BadInput(f"There is no settings file {named}, which {how} names.", f"Create it, or omit {how}.")
    return named


def _from_file(path: Path | None) -> dict[str, RawValue]:
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", "Let this user read the file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        remedy = 'Write lines such as `port = 8420` or `queues = ["default"]`.'
        raise BadInput(f"{path} is not valid TOML: {error}.", remedy) from None
    for name in RENAMED.keys() & document.keys():
        raise _renamed(name, f"{path} sets {name}", RENAMED[name])
    for name in document.keys() - TABLE.keys():
        raise BadInput(f"{path} sets {name!r}, which is not a setting.", _meant(name), field=name)
    return {name: RawValue(value, Origin("file", str(path))) for name, value in document.items()}


def _renamed(name: str, origin: str, instead: str) -> BadInput:
    return BadInput(f"{origin}, which is called {RENAMED[name]} now.", f"Write {instead}.", field=RENAMED[name])


def _meant(name: str) -> str:
    close = _nearest(name.lower().replace("-", "_"))
    return f"Did you mean {close!r}?" if close else "`horae config show` lists all settings."


def _nearest(name: str) -> str | None:
    """Return the setting with the most similar name; one with the same letters in another order is preferred."""
    close = difflib.get_close_matches(name, TABLE, n=5)
    return next((one for one in close if sorted(one) == sorted(name)), close[0] if close else None)


def misspelled(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables that look like misspelled settings, each with the variable that was probably meant."""
    strange = (name for name in environ if is_unknown(name))
    near = {name: _nearest(name.removeprefix(PREFIX).lower()) for name in strange}
    return {name: TABLE[meant].variable for name, meant in near.items() if meant is not None}


def is_unknown(variable: str) -> bool:
    """Return whether a variable looks like a setting but has no meaning to Horae."""
    return variable.startswith(PREFIX) and variable not in _KNOWN


def _from_environment(environ: Mapping[str, str]) -> dict[str, RawValue]:
    """Read settings from the environment.

    An empty variable counts as absent, because files that define containers cannot unset a variable.
    """
    for name in RENAMED:
        variable = f"{PREFIX}{name.upper()}"
        if environ.get(variable):
            raise _renamed(name, f"{variable} in the environment sets {name}", TABLE[RENAMED[name]].variable)
    given = ((setting, environ.get(setting.variable)) for setting in TABLE.values())
    return {
        s.name: RawValue(text, Origin("environment", f"{s.variable} in the environment")) for s, text in given if text
    }


def _from_flags(flags: Mapping[str, Any]) -> dict[str, RawValue]:
    given = {name: value for name, value in flags.items() if value not in (None, "", (), {})}
    return {
        name: RawValue(value, Origin("flag", FLAGS.get(name, f"--{name.replace('_', '-')}")))
        for name, value in given.items()
    }


def _read(setting: Setting, found: RawValue) -> Any:
    value = _split(setting, found)
    try:
        return msgspec.convert(value, setting.type, strict=not isinstance(found.value, str), dec_hook=_custom)
    except msgspec.ValidationError as error:
        raise found.refuse(setting, _expected(setting, str(error))) from None
    except BadInput as error:
        raise found.refuse(setting, error.detail, error.remedy) from None


def _expected(setting: Setting, message: str) -> str:
    """Translate msgspec's message about a wrong value into words for users who do not write Python."""
    kind = getattr(setting.type, "__origin__", setting.type)
    if get_origin(kind) is Literal:
        *first, last = get_args(kind)
        return f"it takes {', '.join(first)} or {last}."
    for name, words in _IN_WORDS.items():
        if message.startswith((f"Expected `{name}`", f"Expected `{name} ")):
            bound = message.replace("`", "").removeprefix(f"Expected {name}").replace(" >= ", " of at least ")
            return f"it takes {words}{'' if ', got' in message else bound.replace(' <= ', ' of at most ')}."
    return f"{message[:1].lower()}{message[1:].replace('`', '')}."


_IN_WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text", "array": "a list",
    "object": "names with values",
}  # fmt: skip


def _split(setting: Setting, found: RawValue) -> Any:
    """Split a list written as "a,b" or a table written as "k=v,k=v", because some sources can have only texts."""
    if isinstance(setting.default, tuple) and isinstance(found.value, str):
        return [part.strip() for part in found.value.split(",") if part.strip()]
    if isinstance(setting.default, dict) and isinstance(found.value, str | list | tuple):
        parts = found.value.split(",") if isinstance(found.value, str) else found.value
        return dict(_pair(setting, found, part) for part in parts if part)
    return found.value


def _pair(setting: Setting, found: RawValue, part: Any) -> tuple[str, str]:
    key, _, value = str(part).partition("=")
    if not key.strip():
        raise found.refuse(setting, f"{part!r} has no name before its value.")
    return key.strip(), value.strip()


def _custom(type_: type, value: Any) -> Any:
    if type_ is DurationSetting:
        return DurationSetting(parse_duration(value))
    if type_ is Secret and isinstance(value, str):
        return Secret(value.strip())
    if type_ is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    raise msgspec.ValidationError(f"Expected `text`, got `{type(value).__name__}`")


def _check_rhythm(settings: Settings, found: Mapping[str, RawValue]) -> None:
    for name in ("heartbeat", "session_timeout"):
        if name in found and getattr(settings, name) < 1000:
            raise found[name].refuse(TABLE[name], "it must be at least a millisecond.")
    if settings.heartbeat * 2 > settings.session_timeout:
        given = next(name for name in ("heartbeat", "session_timeout") if name in found)
        raise found[given].refuse(
            TABLE[given],
            f"a heartbeat of {settings.heartbeat} is too long for a session timeout of {settings.session_timeout}.",
            "Set the heartbeat to at most half of the session timeout, or better to a third.",
        )


def _check_master_keys(settings: Settings, found: Mapping[str, RawValue]) -> None:
    if "master_key" not in found:
        return
    try:
        read_master_keys(str(settings.master_key))
    except BadInput as error:
        raise found["master_key"].refuse(TABLE["master_key"], error.detail, error.remedy) from None


def _check_features(settings: Settings, found: Mapping[str, RawValue]) -> None:
    if "features" not in found:
        return
    try:
        enabled(settings.features)
    except BadInput as error:
        raise found["features"].refuse(TABLE["features"], error.detail, error.remedy) from None
