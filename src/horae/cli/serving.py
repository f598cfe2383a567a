"""What `up` and `server` share: settings become a node that serves."""

import platform
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from horae.cli.firstkey import make_folder
from horae.cli.process import calm_collector
from horae.config import Settings, load
from horae.config.build import engine_settings
from horae.engine.node import Node
from horae.env import Env
from horae.server.run import Serving, is_loopback, serve

EVERYWHERE = ("0.0.0.0", "::", "")


def read_settings(flags: dict[str, Any], config: Path | None) -> Settings:
    """Settings of a long-running command; its logs follow them from here on."""
    from horae.cli.logs import configure_logs

    settings = load(flags, file=config).settings
    configure_logs(settings)
    return settings


async def open_node(env: Env, settings: Settings, command: str) -> Node:
    """Open the store and bring it up to date."""
    make_folder(settings.data)
    owner = f"({command}, {settings.public_url})"
    return await Node.open(env, settings.store_url, engine_settings(reachable(settings)), owner)


def reachable(settings: Settings) -> Settings:
    """An address that stands for all of them is none to reach it by; the machine's name is."""
    if settings.advertise or settings.host not in EVERYWHERE or not settings.port:
        return settings
    return msgspec.structs.replace(settings, advertise=f"http://{platform.node()}:{settings.port}")


async def listen(node: Node, settings: Settings, parts: Collection[str]) -> Serving:
    """Begin to serve. Whoever sets another host has asked for other machines to be let in."""
    remote = not is_loopback(settings.host)
    serving = await serve(node, settings.host, settings.port, parts=parts, allow_remote=remote)
    calm_collector()
    return serving
