"""The commands of passgate by their names."""

from typing import Any

import typer

from passgate.flows.cli.app import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
