"""Print what extras of the project ask for, a requirement to a line.

python release/requirements.py neural spark
"""

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
sys.stdout.writelines(f"{line}\n" for name in sys.argv[1:] for line in extras[name])
