"""The rooms' import direction, the front door's speed, and what the package promises about itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sidelight as sl

PACKAGE = Path(sl.__file__).parent
ROOMS = (
    "foundation", "schema", "sources", "belief", "mechanisms", "plan", "leakage", "knowledge", "auditing",
    "calibration", "protocols", "labels", "estimation", "transport", "advice", "learning", "attacks",
    "studies", "report", "doctor", "cli", "__main__",
)  # fmt: skip


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = (
                [f"sidelight.{name.name}" for name in node.names]
                if node.module == "sidelight"
                else [node.module]
            )
        for name in names:
            if name == "sidelight":
                found.add("the front door")
            elif name and name.startswith("sidelight."):
                found.add(name.split(".")[1])
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_room_imports_only_from_rooms_before_it(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is no room of the house"
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    if room == "cli":
        allowed |= {"the front door", "__version__"}
    assert imports(path) <= allowed


def test_every_public_name_loads() -> None:
    assert all(getattr(sl, name) is not None for name in sl.__all__)
    assert set(sl.__all__) == {name for names in sl._HOMES.values() for name in names}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sl.nonsense


def test_importing_the_package_and_the_command_line_loads_nothing_heavy() -> None:
    script = (
        "import sys, sidelight, sidelight.cli; "
        "print([m for m in ('numpy', 'pyarrow', 'duckdb', 'numba', 'scipy', 'plotly') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
