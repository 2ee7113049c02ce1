"""Run migrations on the connection that store/database.py opened: Alembic loads this file by its
name.
"""

from alembic import context

from roost_lab.recorder.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
