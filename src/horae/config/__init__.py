"""Settings: flags before HORAE_* variables before horae.toml before defaults, each documented in `settings`.

Servers, workers, the client and the CLI read them here; the engine and the store only get values.
"""

from horae.config.load import Loaded, Origin, load
from horae.config.settings import DEFAULT_URL, TABLE, Secret, Setting, Settings, Span

__all__ = ["DEFAULT_URL", "TABLE", "Loaded", "Origin", "Secret", "Setting", "Settings", "Span", "load"]
