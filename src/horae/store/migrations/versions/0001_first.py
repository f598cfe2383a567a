"""The first store."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything, as the dialect's file beside this one says."""
    dialect = op.get_bind().dialect.name
    script = Path(__file__).with_suffix(f".{dialect}.sql").read_text()
    for statement in script.split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
