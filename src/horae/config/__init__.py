"""Settings. A flag overrides a HORAE_* variable, which overrides horae.toml, which overrides the default.

Servers, workers, the client and the CLI read settings here. The engine and the store only get values passed to them.
"""
