"""schema/ as SQL: `python -m horae.store.migrations.render` writes the first revision's files.

Only until the first release: from then on 0001 never changes, and a change of schema/ needs a revision of its own.
"""

from pathlib import Path
from typing import Any

from sqlalchemy.schema import CreateIndex, CreateTable

from horae.store.ddl import extras
from horae.store.schema.whole import metadata

DIALECTS = ("sqlite", "postgresql")


def render(dialect: str) -> str:
    """Every statement that makes an empty database a store."""
    statements = [str(made.compile(dialect=_dialect(dialect))).strip() for made in _made()]
    return ";\n\n".join(_tidy(text) for text in [*statements, *extras(dialect)]) + ";\n"


def path(dialect: str) -> Path:
    """The file of the first revision for a dialect."""
    return Path(__file__).parent / "versions" / f"0001_first.{dialect}.sql"


def _made() -> list[Any]:
    made: list[Any] = []
    for table in metadata.sorted_tables:
        made.append(CreateTable(table))
        made += [CreateIndex(index) for index in sorted(table.indexes, key=lambda index: str(index.name))]
    return made


def _dialect(name: str) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    return sqlite.dialect() if name == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]


def _tidy(text: str) -> str:
    lines = (line.rstrip().replace("\t", "    ") for line in text.strip().splitlines())
    return "\n".join(line for line in lines if line)


if __name__ == "__main__":
    for name in DIALECTS:
        path(name).write_text(render(name))
