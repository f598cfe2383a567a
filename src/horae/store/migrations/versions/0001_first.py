"""The first store: every table of schema.py."""

from alembic import op

from horae.store.ddl import extras
from horae.store.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything."""
    connection = op.get_bind()
    metadata.create_all(connection)
    for statement in extras(connection.dialect.name):
        op.execute(statement)
