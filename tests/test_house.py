"""The rooms' import direction, the front door's speed, and what the package promises about itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

import sidelight as sl
from sidelight.foundation.modules import homes_of

PACKAGE = Path(sl.__file__).parent
ROOMS = (
    "foundation", "schema", "sources", "belief", "mechanisms", "plan", "leakage", "knowledge", "auditing",
    "protocols", "ledger", "labels", "estimation", "calibration", "comparison", "transport", "advice",
    "remedying", "learning", "service", "attacks", "studies", "report", "project", "studio", "doctor", "cli",
    "__main__",
)  # fmt: skip


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all that a file says of imports and calls; every test of it asks for the same."""
    kept = (ast.Import, ast.ImportFrom, ast.Call)
    return tuple(node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kept))


def imports(path: Path) -> set[str]:
    found = set()
    for node in nodes_of(path):
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


SOURCES = sorted(PACKAGE.rglob("*.py"))
by_path = pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))


@by_path
def test_a_room_imports_only_from_rooms_before_it(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is no room of the house"
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    if room == "cli":
        allowed |= {"the front door", "__version__"}
    assert imports(path) <= allowed


PAGE = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
MAP = dict(re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", PAGE, flags=re.MULTILINE))
"""What each room may touch, as the page says it."""


def test_the_page_has_every_room_in_its_order() -> None:
    assert tuple(MAP) == ROOMS


@pytest.mark.parametrize("room", MAP)
def test_a_room_touches_only_what_the_page_allows(room: str) -> None:
    before = ROOMS[: ROOMS.index(room)]
    named = before if MAP[room].strip() == "every room above" else re.findall(r"`(\w+)`", MAP[room])
    assert set(named) <= set(before)
    touched = set().union(*(imports(path) for path in SOURCES if room_of(path) == room))
    assert touched & set(ROOMS) <= {room, "foundation", *named}


def named_on_the_page() -> list[str]:
    """Return every name of a room that the page gives, in words or in a flow."""
    names = set(re.findall(rf"(?<![/\w])(?:{'|'.join(ROOMS)})(?:\.\w+)+", PAGE))
    return sorted(name for name in names if not name.endswith(".py"))


@pytest.mark.parametrize("name", named_on_the_page())
def test_the_page_names_what_exists(name: str) -> None:
    assert resolve_name(f"sidelight.{name}") is not None


HOMES = re.findall(r"^\| [^|`]+ \| ([^|]+) \| ((?:`[\w/.]+`(?:, )?)+) \|$", PAGE, flags=re.MULTILINE)
"""What the nouns' table names in words, and in which files that is."""


@pytest.mark.parametrize(("homes", "files"), HOMES)
def test_a_noun_is_in_the_file_that_the_page_gives(homes: str, files: str) -> None:
    paths = [PACKAGE / file for file in re.findall(r"`([\w/.]+)`", files)]
    for name in re.findall(r"`([\w.]+)`", homes):
        is_module = PACKAGE / f"{name.replace('.', '/')}.py" in paths
        defined = rf"^(?:class|def) {name.split('.')[-1]}\b|^{name.split('.')[-1]}\b.*="
        assert is_module or any(re.search(defined, path.read_text("utf-8"), re.MULTILINE) for path in paths)


PACKAGES = [name for name in ROOMS if (PACKAGE / name / "__init__.py").exists()]


def test_every_public_name_loads() -> None:
    assert all(getattr(sl, name) is not None for name in sl.__all__)
    assert set(dir(sl)) == set(sl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sl.nonsense
    with pytest.raises(AttributeError, match=r"it is sidelight\.knowledge\.worst_adversary"):
        _ = sl.worst_adversary


@pytest.mark.parametrize(
    "name", ["Collected", "Parameters", "profile_epsilon", "PrivateNaiveBayes", "smp", "print_audit"]
)
def test_a_name_that_was_at_the_top_says_where_it_is(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(sl, name)
    assert resolve_name(str(caught.value).split("; it is ")[1]) is not None


def test_the_front_door_has_about_forty_names_and_every_room() -> None:
    homes = homes_of(sl.__file__, "sidelight")
    rooms = {name for name, home in homes.items() if home == "sidelight"}
    assert rooms == set(ROOMS) - {"doctor", "cli", "__main__"}
    assert 35 <= len(homes) - len(rooms) <= 50


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


FOREIGN = {
    "cli/bench.py": "a mechanism of the user's, which may be a class or a function",
    "cli/messages.py": "typer's commands and errors, whose classes differ between its releases",
    "sources/memory.py": "data frames and connections, which need not be installed",
    "sources/session.py": "a Spark data frame, which need not be installed",
}
"""Where an attribute may be asked for by its name, and of what: never of an object of ours."""
AT_THE_DOOR: dict[str, str] = {
    "advice Estimates": "what is known may be frequencies, or the estimates of a first phase",
    "attacks RecordReports": "attackers take releases of any kind; only collected reports can be shuffled",
    "attacks Table": "the truth may be a table or codes",
    "belief Counts": "a belief is made from rows or from counts",
    "leakage Reports": "a randomiser of the user's may return our reports or anything else",
    "sources Schema": "a schema, or the file of a data dictionary",
    "transport Design": "a collection is told by a plan or a design, and anything else is refused",
    "transport Panel": "a round is told by a plan or a panel, and anything else is refused",
    "transport Plan": "a collection is told by a plan or a design, and anything else is refused",
}
"""Which classes a room may ask for that are of another, where a function takes several kinds of things."""


def calls(path: Path, *functions: str) -> list[ast.Call]:
    """Return the calls of builtins in a file."""
    named = (
        node for node in nodes_of(path) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    return [node for node in named if node.func.id in functions and len(node.args) > 1]


def imported(path: Path) -> dict[str, str]:
    """Return the names that a file takes from other rooms, with these rooms; errors are for everyone."""
    found = (node for node in nodes_of(path) if isinstance(node, ast.ImportFrom))
    parts = ((node, str(node.module).split(".")) for node in found)
    others = {*ROOMS} - {room_of(path), "foundation"}
    return {
        alias.asname or alias.name: module[1]
        for node, module in parts
        if module[0] == "sidelight" and len(module) > 1 and module[1] in others
        for alias in node.names
    }


def test_no_attribute_of_ours_is_asked_for_by_its_name() -> None:
    asked = {
        f"{path.relative_to(PACKAGE)}: {node.args[1].value}"
        for path in SOURCES
        for node in calls(path, "getattr", "hasattr")
        if isinstance(node.args[1], ast.Constant)
    }
    assert {place for place in asked if place.split(":")[0] not in FOREIGN} == set()
    assert {place.split(":")[0] for place in asked} >= set(FOREIGN), "a reason that is no longer needed"


def test_no_room_asks_for_the_class_of_another() -> None:
    asked = set()
    for path in SOURCES:
        others = imported(path)
        for part in (part for node in calls(path, "isinstance") for part in ast.walk(node.args[1])):
            if isinstance(part, ast.Name) and part.id in others:
                asked.add(f"{room_of(path)} {part.id}")
            if isinstance(part, ast.Attribute) and ast.unparse(part).startswith("sl."):
                asked.add(f"{room_of(path)} {part.attr}")
    assert asked - set(AT_THE_DOOR) == set()
    assert set(AT_THE_DOOR) <= asked, "a reason that is no longer needed"
