"""Settings in the form that is shown to users and in documents; secrets are masked."""

import re
from pathlib import Path
from typing import Any, Literal, get_origin

from horae.config.load import LoadedSettings
from horae.config.server_settings import DurationSetting, Secret
from horae.config.settings import TABLE, Setting

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^@/]*@")


def masked(text: str) -> str:
    """Replace the password in a URL by ***."""
    return _PASSWORD.sub(r"\1:***@", text)


def plain(value: Any) -> Any:
    """Return a setting's value in JSON types, with secrets masked."""
    if isinstance(value, Secret):
        return "***" if value else ""
    if isinstance(value, tuple):
        return [masked(part) for part in value]
    if isinstance(value, DurationSetting | Path):
        return str(value)
    return masked(value) if isinstance(value, str) else value


def text(value: Any) -> str:
    """Return a setting's value in the form of an environment variable, with secrets masked."""
    shown = plain(value)
    if isinstance(shown, dict):
        return ",".join(f"{key}={item}" for key, item in shown.items())
    return ",".join(shown) if isinstance(shown, list) else str(shown)


def kind(setting: Setting) -> str:
    """Return a setting's type in a word or two."""
    if get_origin(getattr(setting.type, "__origin__", setting.type)) is Literal:
        return "one of a few words"
    kinds = {
        DurationSetting: "duration",
        Secret: "secret text",
        bool: "yes or no",
        int: "number",
        tuple: "list",
        dict: "pairs",
    }
    kinds[type(Path())] = "path"
    return kinds.get(type(setting.default), "text")


def rows(loaded: LoadedSettings) -> list[dict[str, Any]]:
    """Return the output of `horae config show`: one row per setting, with its value and origin."""
    return [
        {
            "name": name,
            "value": plain(getattr(loaded.settings, name)),
            "origin": loaded.origins[name].text,
            "variable": setting.variable,
            "meaning": setting.meaning,
        }
        for name, setting in TABLE.items()
    ]


def reference() -> str:
    """Return the table of all settings for docs/configuration.md, in Markdown."""
    lines = ["| setting | variable | type | default | meaning |", "|---|---|---|---|---|"]
    for setting in TABLE.values():
        default = f"`{text(setting.default)}`" if text(setting.default) else ""
        cells = f"`{setting.name}`", f"`{setting.variable}`", kind(setting), default, setting.meaning
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
