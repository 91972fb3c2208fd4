"""The sources of the site: `python docs/site_pages.py build/docs`.

They are the pages of this folder, and those made from the code: references, glossary and notebooks.
Nothing here runs when the package is used.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import typer

import sidelight
from sidelight.cli import app
from sidelight.foundation.modules import homes_of
from sidelight.report.glossary import glossary_markdown

DOCS = Path(__file__).resolve().parent
TOP = homes_of(sidelight.__file__, "sidelight")
ROOMS = {
    "schema": "Schema",
    "sources": "Tables",
    "belief": "Beliefs",
    "mechanisms": "Mechanisms",
    "plan": "Plans",
    "leakage": "Leakage",
    "knowledge": "Prior knowledge",
    "auditing": "Audits",
    "calibration": "Calibration",
    "protocols": "Protocols",
    "ledger": "Ledgers",
    "labels": "Labels",
    "estimation": "Estimates",
    "transport": "Reports and their sums",
    "advice": "Advice",
    "learning": "Learning",
    "attacks": "Attacks",
    "studies": "Studies",
    "report": "Reports",
    "foundation.errors": "Errors",
}


def write_sources(folder: Path) -> None:
    """Write every page of the site to a folder that is made anew."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    pages = {
        "reference/python.md": python_page(),
        "reference/command-line.md": command_page(),
        "reference/glossary.md": glossary_markdown(),
    }
    for path in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = notebook_page(path)
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")


def python_page() -> str:
    """Return every public name, by the room it lives in."""
    top = ", ".join(f"`{name}`" for name, home in TOP.items() if home != "sidelight")
    lines = [
        "# Python reference", "",
        f"At the top of the package, as in `sidelight.read`: {top}.", "",
        "Every other name is reached through its room, as in `sidelight.leakage.profile_epsilon`.",
    ]  # fmt: skip
    for room, title in ROOMS.items():
        lines += ["", f"## {title}", "", f"`sidelight.{room}`", ""]
        lines += [f"::: sidelight.{room}.{name}\n" for name in _names(f"sidelight.{room}")]
    return "\n".join(lines)


def _names(home: str) -> list[str]:
    """Return the names that a package lists, or those that the front door takes from a module."""
    module = import_module(home)
    if hasattr(module, "__path__"):
        return sorted(homes_of(str(module.__file__), home))
    return sorted(name for name, origin in TOP.items() if origin == home)


def command_page() -> str:
    """Return every command with its arguments and options."""
    root = typer.main.get_command(app)
    lines = [
        "# Command-line reference",
        "",
        "Exit codes: 0 fine, 1 a limit is exceeded or not certified to be kept, 2 bad input, 3 internal.",
    ]
    lines += [
        line for name, command in root.commands.items() for line in _command(f"sidelight {name}", command)
    ]
    return "\n".join(lines)


def _command(path: str, command: Any) -> Iterator[str]:
    yield from ("", f"## {path}", "", (command.help or "").split("\n\n")[0], "")
    children = getattr(command, "commands", {})
    if not children:
        yield from ("| option | meaning | default |", "| --- | --- | --- |")
        for parameter in command.params:
            yield _row(parameter)
    for name, child in children.items():
        yield from _command(f"{path} {name}", child)


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (parameter.opts if _is_option(parameter) else [parameter.name]))
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) else f"`{default}`"
    text = (parameter.help or "").replace("|", "\\|")
    return f"| {names} | {text} | {shown if not parameter.required else 'required'} |"


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def notebook_page(path: Path) -> str:
    """Return a notebook as a page: its text, its code and what the code printed."""
    notebook = nbformat.read(path, as_version=4)
    return "\n\n".join(part for cell in notebook.cells for part in _cell(cell))


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            yield f'<img alt="figure" src="data:image/png;base64,{data["image/png"].strip()}">'
        else:
            yield f"```text\n{(output.get('text') or data.get('text/plain', '')).rstrip()}\n```"


if __name__ == "__main__":
    write_sources(Path(sys.argv[1]))
