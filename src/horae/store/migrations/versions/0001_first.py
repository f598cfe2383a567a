"""The first store."""

from alembic import op

from horae.store.migrations.revisions import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything, as the dialect's file beside this one says."""
    bind = op.get_bind()
    for statement in statements("0001_first", bind.dialect.name):
        bind.exec_driver_sql(statement)
