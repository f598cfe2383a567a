"""Settings in the shape that the engine takes."""

from horae.config.settings import Settings
from horae.engine.settings import EngineSettings


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's times, and where others reach it."""
    return EngineSettings(
        session_timeout=int(settings.session_timeout),
        heartbeat=int(settings.heartbeat),
        retention=int(settings.retention),
        fire_retention=int(settings.fire_retention),
        url=settings.public_url,
    )
