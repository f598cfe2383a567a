"""Settings: flags before HORAE_* variables before horae.toml before defaults, each documented in `settings`.

Servers, workers, the client and the CLI read settings here; the engine and the store only get values.
"""
