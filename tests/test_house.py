"""The rooms' import direction, the front door's speed, and what the package promises about itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sidelight as sl
from sidelight.foundation.lazy import homes_of

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


PACKAGES = [name for name in ROOMS if (PACKAGE / name / "__init__.py").exists()]


def test_every_public_name_loads() -> None:
    assert all(getattr(sl, name) is not None for name in sl.__all__)
    assert set(dir(sl)) == set(sl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sl.nonsense


def test_the_front_door_has_about_forty_names_and_every_room() -> None:
    homes = homes_of(sl.__file__, "sidelight")
    rooms = {name for name, home in homes.items() if home == "sidelight"}
    assert rooms == set(ROOMS) - {"doctor", "cli", "__main__"}
    assert 35 <= len(homes) - len(rooms) <= 45


@pytest.mark.parametrize("room", PACKAGES)
def test_every_name_that_a_room_lists_loads_from_it(room: str) -> None:
    package = import_module(f"sidelight.{room}")
    for name in homes_of(package.__file__, package.__name__):
        assert getattr(package, name) is not None


def test_names_at_the_top_are_those_of_their_rooms() -> None:
    for name, home in homes_of(sl.__file__, "sidelight").items():
        if home != "sidelight":
            assert getattr(sl, name) is getattr(import_module(home), name)


def test_importing_the_package_and_the_command_line_loads_nothing_heavy() -> None:
    script = (
        "import sys, sidelight, sidelight.cli; heavy = 'numpy pyarrow duckdb numba scipy sklearn pydantic "
        "rich.table jinja2 matplotlib'; print([name for name in heavy.split() if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
