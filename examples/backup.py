"""Database backup: copy a SQLite database while it is in use, check the copy, keep the newest few.

It runs in a separate process, so that a long copy does not block other jobs, and with a high priority. A copy gets its
final name only when it is complete and intact.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from horae import App, Context, GiveUp, every

app = App("backup")


@app.job(schedule=every("6h"), retries=3, timeout="30m", priority=8, isolation="process")
def backup(ctx: Context, database: str = "shop.db", folder: str = "backups", keep: int = 7) -> dict[str, Any]:
    """Copy a database into a folder and delete all but the newest copies."""
    source, target = Path(database), Path(folder)
    if not source.exists():
        raise GiveUp(f"There is no database {source}.")
    target.mkdir(parents=True, exist_ok=True)
    copy = target / f"{source.stem}-{ctx.scheduled_at:%Y%m%dT%H%M%S}.db"
    partial = copy.with_suffix(f".{ctx.token}")  # each attempt writes another file
    take(source, partial, ctx)
    partial.rename(copy)
    old = sorted(target.glob(f"{source.stem}-*.db"))[:-keep]
    for path in old:
        path.unlink()
        ctx.log("removed %s", path.name)
    return {"copy": str(copy), "bytes": copy.stat().st_size, "removed": len(old)}


def take(source: Path, target: Path, ctx: Context) -> None:
    """Copy page by page, reporting the progress and stopping on request."""

    def look(_: int, remaining: int, total: int) -> None:
        ctx.raise_if_cancelled()
        ctx.progress(100 * (total - remaining) / max(1, total), f"{remaining} pages to go")

    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(target)) as copy:
        original.backup(copy, pages=256, progress=look)
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        target.unlink()
        raise RuntimeError(f"The copy is damaged: {verdict}")
