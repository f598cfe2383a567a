"""A standby of a PostgreSQL server: it follows by streaming replication, can be cut off, and can take over."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.kit.postgres import Postgres
from tests.waiting import eventually


class Pair:
    """A primary and its standby."""

    def __init__(self, primary: Postgres, standby: Postgres) -> None:
        self.primary, self.standby = primary, standby

    def url(self, database: str, options: str = "") -> str:
        """The URL that names both, the primary first."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        return f"postgresql://postgres@{hosts}/{database}{options}"

    async def catch_up(self) -> None:
        """Wait until the standby has replayed all that the primary has committed."""
        at = self.primary.execute("SELECT pg_current_wal_flush_lsn()").strip()
        behind = f"SELECT coalesce(pg_last_wal_replay_lsn() >= '{at}', false)"
        await eventually(lambda: self.standby.execute(behind).strip() == "t")

    async def cut_off(self) -> None:
        """Let the standby have everything until now, and nothing that is committed from now on."""
        await self.catch_up()
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()")
        receiving = "SELECT count(*) FROM pg_stat_wal_receiver"
        await eventually(lambda: self.standby.execute(receiving).strip() == "0")

    def fail_over(self) -> None:
        """Crash the primary and have the standby take over, on the next timeline."""
        self.primary.stop("immediate")
        self.promote()

    def promote(self) -> None:
        """Have the standby take over; the primary is left alone."""
        self.standby._run("pg_ctl", "--wait", "--silent", "promote")


@contextmanager
def replicated(primary: Postgres) -> Iterator[Pair]:
    """A standby of a server for the length of a `with` block."""
    standby = Postgres(Path(tempfile.mkdtemp(prefix="horae-standby-")))
    try:
        standby._hand_over()
        copying = ("--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync")
        standby._run("pg_basebackup", f"--dbname={primary.url()}", *copying)
        standby.start()
        yield Pair(primary, standby)
    finally:
        standby.remove()
