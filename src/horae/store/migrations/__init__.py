"""The store's versions: Alembic revisions, packaged with Horae and run by it. Only the drivers import this package."""
