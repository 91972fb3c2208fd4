"""Run the study and write its figures and tables to a folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sidelight.foundation.errors import InputError
from sidelight.foundation.progress import progress_bars
from sidelight.studies.collection import run, write_study


def main(arguments: Sequence[str]) -> int:
    """Run with the arguments of the command line: `[--quick] FOLDER`."""
    quick = "--quick" in arguments
    folders = [argument for argument in arguments if argument != "--quick"]
    if len(folders) != 1:
        raise InputError("name one folder to write to, for example `--quick study`.")
    Path(folders[0]).mkdir(parents=True, exist_ok=True)
    with progress_bars():
        study = run(quick)
    write_study(study, folders[0])
    sys.stdout.write(study.verdict + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
