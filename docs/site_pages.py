"""The sources of the site: `python docs/site_pages.py build/docs`.

They are the pages of this folder, and those made from the code: references, glossary, notebooks and the
reports of the gallery. Beside them lies the site's configuration, `build/zensical.toml`, which names the
version. `python docs/site_pages.py --keep build/site site` puts what was built into a folder of its version,
and lists the versions that are there. Nothing here runs when the package is used.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import typer
from gallery import write_gallery

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
    "comparison": "Plans side by side",
    "remedying": "Remedies",
    "learning": "Learning",
    "attacks": "Attacks",
    "studies": "Studies",
    "report": "Reports",
    "project": "Projects",
    "service": "The service",
    "studio": "The studio",
    "foundation.errors": "Errors",
}


def write_sources(folder: Path) -> None:
    """Write every page of the site to a folder that is made anew."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    write_gallery(folder / "gallery")
    pages = {
        "reference/python.md": python_page(),
        "reference/command-line.md": command_page(),
        "reference/glossary.md": glossary_markdown(),
        "versions.md": version_page(sidelight.__version__),
    }
    for path in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = notebook_page(path)
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    write_configuration(DOCS.parent / "zensical.toml", folder.parent / "zensical.toml", sidelight.__version__)


def write_configuration(source: Path, target: Path, version: str) -> None:
    """Write the site's configuration for a version, which is in the name of the site."""
    text = source.read_text("utf-8")
    for plain, told in (
        ('docs_dir = "build/docs"', 'docs_dir = "docs"'),
        ('paths = ["src"]', 'paths = ["../src"]'),
        ('site_name = "Sidelight"', f'site_name = "Sidelight {version}"'),
    ):
        if plain not in text:
            raise SystemExit(f"{source} has no line {plain!r}; docs/site_pages.py needs it.")
        text = text.replace(plain, told)
    target.write_text(text, "utf-8")


def version_page(version: str) -> str:
    """Return the page that says which version a site describes, and where others are."""
    return f"""# Versions

These pages describe Sidelight {version}; so does the name at the top of each.

<a href="../versions.html">All versions of these pages that are kept here</a>

`make docs` puts each version into a folder of its own and leaves those of others as they are. The list is
made anew from the folders that are there.
"""


def keep(built: Path, site: Path, version: str) -> None:
    """Put a built site into the folder of its version, in place of what that held; other versions stay."""
    site.mkdir(exist_ok=True)
    if (site / version).exists():
        shutil.rmtree(site / version)
    shutil.copytree(built, site / version)
    write_versions(site)


def write_versions(site: Path) -> list[str]:
    """List the versions of a site, newest first: as JSON, as a page, and with the newest as its start."""
    names = [path.name for path in site.iterdir() if (path / "index.html").is_file()]
    versions = sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    listed = [
        {"version": name, "title": name, "aliases": ["latest"] * (name == versions[0])} for name in versions
    ]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    items = "\n".join(f'<li><a href="{name}/index.html">Sidelight {name}</a></li>' for name in versions)
    (site / "versions.html").write_text(
        _PAGE.format(head="", body=f"<h1>Versions</h1>\n<ul>\n{items}\n</ul>"), "utf-8"
    )
    start = f'<meta http-equiv="refresh" content="0; url={versions[0]}/index.html">\n'
    link = f'<a href="{versions[0]}/index.html">Sidelight {versions[0]}</a>'
    (site / "index.html").write_text(_PAGE.format(head=start, body=link), "utf-8")
    return versions


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{head}<title>Sidelight</title>
<style>:root {{ color-scheme: light dark }}
body {{ font: 1rem sans-serif; margin: 3rem auto; max-width: 30rem }}</style>
</head>
<body>
{body}
</body>
</html>
"""


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
        lines += [line for name in _names(f"sidelight.{room}") for line in _entry(f"sidelight.{room}", name)]
    return "\n".join(lines)


def _entry(home: str, name: str) -> list[str]:
    """Return a name's place in the reference, with an example where its docstring has none."""
    found = None if has_own_example(home, name) else example_of(name)
    if found is None:
        return [f"::: {home}.{name}\n"]
    page, block = found
    source = f"From [{page.stem.replace('-', ' ')}](../{page.relative_to(DOCS).as_posix()}), which runs it:"
    return [f"::: {home}.{name}\n", source, "", f"```python\n{block}\n```", ""]


def has_own_example(home: str, name: str) -> bool:
    """Tell whether the docstring of a public name shows how it is used."""
    named = getattr(import_module(home), name)
    return callable(named) and ">>>" in (inspect.getdoc(named) or "")


def example_of(name: str) -> tuple[Path, str] | None:
    """Return the first executed example that uses a name, and its page; those of `examples` come first."""
    return next(((page, block) for page, block, words in _examples() if name in words), None)


@cache
def _examples() -> tuple[tuple[Path, str, frozenset[str]], ...]:
    """Return every example that tests run, with its page and the words of its code."""
    pages = sorted(DOCS.rglob("*.md"), key=lambda page: (page.parent.name != "examples", page))
    found = [
        (page, block.strip())
        for page in pages
        for block in re.findall(r"```python\n(>>>.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    return tuple((page, block, _words(block)) for page, block in found)


def _words(block: str) -> frozenset[str]:
    """Return the words of an example's code, without what it prints."""
    code = [line for line in block.splitlines() if line.startswith((">>>", "..."))]
    return frozenset(re.findall(r"\w+", "\n".join(code)))


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
    if sys.argv[1] == "--keep":
        keep(Path(sys.argv[2]), Path(sys.argv[3]), sidelight.__version__)
    else:
        write_sources(Path(sys.argv[1]))
