"""Settings in the form that is shown to users; secrets are masked."""

import re
from pathlib import Path
from typing import Any

from horae.config.load import LoadedSettings
from horae.config.server_settings import DurationSetting, Secret
from horae.config.settings import TABLE

_PARAMETER = re.compile(r"(?<=[?&])(password|passfile|sslpassword)=[^&]*")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):.*@")  # up to the last @, because a password may contain any character


def masked(text: str) -> str:
    """Replace the passwords in a URL by ***."""
    return _PASSWORD.sub(r"\1:***@", _PARAMETER.sub(r"\1=***", text))


def plain(value: Any) -> Any:
    """Return a setting's value in JSON types, with secrets masked."""
    if isinstance(value, Secret):
        return "***" if value else ""
    if isinstance(value, tuple):
        return [masked(part) for part in value]
    if isinstance(value, DurationSetting | Path):
        return str(value)
    return masked(value) if isinstance(value, str) else value


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
