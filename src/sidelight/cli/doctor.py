"""The command `doctor`."""

from __future__ import annotations

import typer

from sidelight.cli.common import echo_json
from sidelight.cli.options import Json


def doctor(json: Json = False) -> None:
    """Check the installation: versions, extras, randomness, compiled kernels."""
    from sidelight.doctor import diagnose, print_diagnosis

    findings = diagnose()
    if json:
        echo_json([vars(finding) for finding in findings])
    else:
        print_diagnosis(findings)
    if not all(finding.is_fine for finding in findings if finding.is_required):
        raise typer.Exit(3)
