"""`python -m tools.clusters.relay FILE`: TCP relays on the loopback, each of which can be cut like a network.

The file has one line per relay: its name, its port and the port behind it. A relay whose name is the name of a file in
the folder `cut` beside it passes on nothing, in both directions, and accepts connections without an answer. Bytes that
arrive meanwhile are passed on when it is healed, as TCP repeats lost packets.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

LOOK = 0.05  # seconds between two looks at the folder `cut`
PIECE = 65536


class Relay:
    """One relay with all its connections."""

    def __init__(self, name: str, port: int, behind: int) -> None:
        self.name, self._port, self._behind = name, port, behind
        self._open = asyncio.Event()
        self._open.set()

    async def start(self) -> None:
        await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    def set_cut(self, is_cut: bool) -> None:
        (self._open.clear if is_cut else self._open.set)()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            behind = await asyncio.open_connection("127.0.0.1", self._behind)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self._pass_on(reader, behind[1]), self._pass_on(behind[0], writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._open.wait()
                writer.write(piece)
                await writer.drain()
        await self._open.wait()
        with suppress(OSError):
            writer.close()


async def main(file: Path) -> None:
    relays = [
        Relay(name, int(port), int(behind)) for name, port, behind in map(str.split, file.read_text().splitlines())
    ]
    for relay in relays:
        await relay.start()
    cut = file.with_name("cut")
    while file.exists():
        names = {path.name for path in cut.iterdir()}
        for relay in relays:
            relay.set_cut(relay.name in names)
        await asyncio.sleep(LOOK)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
