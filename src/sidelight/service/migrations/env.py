"""What alembic runs: it writes the steps as SQL, and connects to nothing."""

from __future__ import annotations

from alembic import context

context.configure(
    dialect_name=context.config.attributes["dialect"],
    as_sql=True,
    literal_binds=True,
    output_buffer=context.config.output_buffer,
)
context.run_migrations()
