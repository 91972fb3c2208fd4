"""The command `doctor`."""

from __future__ import annotations

import typer

from sidelight.cli.common import Json
from sidelight.foundation.terminal import say_json


def doctor(json: Json = False) -> None:
    """Check the installation: versions, extras, randomness, compiled kernels."""
    from sidelight.doctor import diagnose, print_diagnosis

    findings = diagnose()
    if json:
        import json as writer

        say_json(writer.dumps([vars(finding) for finding in findings], indent=2))
    else:
        print_diagnosis(findings)
    if not all(finding.is_fine for finding in findings if finding.is_required):
        raise typer.Exit(3)
