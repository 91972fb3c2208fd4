"""Files are written whole or not at all, and untrusted ones are parsed strictly."""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, NoReturn

from sidelight.foundation.errors import InputError, invalid

REPORTS_KEY = b"sidelight"
"""The key of an Arrow or Parquet schema's metadata under which a file of reports names its protocol."""
PROJECT_FILE = "sidelight.toml"
"""What the file is called that commands read where it lies in the working folder."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a disk, or of a share of it, that is full."""
_LARGEST_PLAN = 1 << 26
_DESCRIBED = (
    {"version", "release"}, {"version", "protocol"}, {"version", "second"}, {"version", "model"},
    {"nodes", "edges"}, {"assessment", "sections"},
)  # fmt: skip
"""The parts of a plan, a protocol, published parameters, a model, the graph of `knowledge`, an assessment."""
_PROJECT = {"version", "data"}
"""The parts of a project file, which people write and nothing makes again; it has a release too."""


def write_atomically(
    path: str | Path, write: Callable[[Path], object], *, replace: bool = True, private: bool = False
) -> Path:
    """Let `write` fill a temporary file beside `path`, then move it into place.

    An interruption at any moment leaves either the old file or the new one, never a part. Unless it may
    `replace`, a file that is there by then, perhaps another process's, stays and is an error. A `private`
    file may be read by nobody but its owner.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist; create it first.")
    mask = os.umask(0)
    os.umask(mask)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())  # before it gets its name: a crash must not leave an empty file
            temporary.chmod(0o600 if private else 0o666 & ~mask)
            (Path.replace if replace else _link)(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise _occupied(target) from None
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    return target


def _link(temporary: Path, target: Path) -> None:
    """Give a file its name unless another has it, even one that came a moment ago."""
    try:
        target.hardlink_to(temporary)
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise
        temporary.replace(target)  # a file system without such links


def _occupied(target: Path, fix: str = "name another file") -> InputError:
    return InputError(f"{target} is there already, and it would be lost; {fix}.")


SAY_OVERWRITE = "name another file, or say `overwrite`"
"""What a refusal advises where a function can be told to replace a file."""


def check_overwrite(path: str | Path, *, force: bool = False, fix: str = "name another file") -> None:
    """Raise if a file is there that must not be replaced: it may hold reports or data, which come only once.

    What Sidelight makes again from a table may be replaced: its pages and pictures, plans, protocols, models.
    So may anything by `force`, where the user says so; `fix` is what the message advises.
    """
    target = Path(path)
    if not force and target.exists() and not _can_be_made_again(target):
        raise _occupied(target, fix)


def _can_be_made_again(path: Path) -> bool:
    """Whether a file is a page, picture, plan, protocol, parameters, model, graph or assessment of ours."""
    suffix = path.suffix.lower()
    if suffix in (".html", ".htm"):
        with path.open("rb") as page:
            return b"<title>Sidelight" in page.read(1 << 12)
    if suffix == ".md":
        with path.open("rb") as page:
            return page.readline(1 << 12).startswith(b"# Sidelight assessment")
    if suffix not in (".toml", ".json") or path.stat().st_size > _LARGEST_PLAN:
        return suffix in (".svg", ".png", ".dot")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if suffix == ".toml" else strict_json(text)
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(content, dict) or content.keys() >= _PROJECT:
        return False
    return any(content.keys() >= keys for keys in _DESCRIBED)


def check_not_read(path: str | Path, *sources: str | Path | None) -> None:
    """Raise if a file or folder to be written is one that is read, by whatever name, or lies among such.

    What is read may be files, folders or globs; None for what was not given.
    """
    target = Path(path)
    for source in sources:
        if source is not None and _is_among(target, str(source)):
            raise InputError(
                f"{target} is read as {source}, or lies in it; what is read is never written over. Name "
                "another place."
            )


def _is_among(target: Path, source: str) -> bool:
    """Whether a path is a source, one of its files, or a place where the source would find it."""
    place = Path(source)
    named = Path(os.path.realpath(target.parent), target.name)
    if place.is_dir():
        files = list(place.rglob("*"))
        would_find = place.resolve() in (target.resolve(), *named.parents)
    else:
        names = [source] if place.exists() else globbed(source)
        files = [Path(name) for name in names]
        pattern = Path(os.path.realpath(place.parent), place.name)
        would_find = fnmatch(str(named), str(pattern)) if "**" in source else named.match(str(pattern))
    return would_find or any(target.exists() and file.exists() and target.samefile(file) for file in files)


def globbed(pattern: str) -> list[str]:
    """Return the files that a pattern finds, with those that are hidden: the engine reads them too."""
    return glob.glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207 - any root


def file_name(label: str) -> str:
    """Return what a source is called in what others read: of a path the last part, for the rest is private.

    >>> file_name("/home/eve/people.csv"), file_name("data/*.parquet"), file_name("yes/no questions")
    ('people.csv', '*.parquet', 'yes/no questions')
    """
    path = Path(label)
    is_path = path.is_absolute() or path.suffix or glob.has_magic(label) or path.is_dir()
    return path.name or path.resolve().name if is_path else label


def is_toml(path: str | Path) -> bool:
    """Whether a file's ending says TOML; else it must say JSON."""
    if not isinstance(path, str | os.PathLike):
        raise invalid("path", "the path of a .toml or .json file", type(path).__name__)
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise InputError(f"{path} must end in .toml or .json.")
    return suffix == ".toml"


def read_text(path: str | Path, complaint: str) -> str:
    """Return what a file of UTF-8 text holds; `complaint` is the error where it is no such text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(complaint) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def write_text(path: str | Path, text: str, *, private: bool = False) -> Path:
    """Write `text` to `path` atomically, as UTF-8; where it is `private`, only for its owner to read."""
    return write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"), private=private)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, so that what was moved into place may be relied upon."""
    if sys.platform == "win32":  # which has no such thing
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing either
            raise
    finally:
        os.close(handle)


def lock(handle: IO[bytes] | int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file against other processes, perhaps `shared` with some, until it is closed.

    Where another has it, this waits if told so, and raises BlockingIOError otherwise.
    """
    if sys.platform == "win32":  # which has no such locks
        return
    import fcntl

    fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def locked(path: Path, kind: str, fix: str) -> IO[bytes]:
    """Return an open file whose lock keeps other processes off a file of this kind; it goes when we do.

    Where another has it the message advises the `fix`.
    What a killed process left half written beside that file is removed: the lock says it is no one's.
    """
    try:
        handle = path.with_name(f".{path.name}.lock").open("ab")
    except OSError as error:
        raise InputError(f"the {kind} {path} cannot be written: {error.strerror}; name another.") from None
    try:
        lock(handle)
    except OSError as error:
        handle.close()
        reason = f"cannot be locked: {error.strerror}; keep it where files can be"
        if isinstance(error, BlockingIOError):
            reason = f"is in use by another process; {fix}"
        raise InputError(f"the {kind} {path} {reason}.") from None
    leftover = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}")
    with suppress(OSError):  # they are in nobody's way
        for other in path.parent.iterdir():
            if leftover.fullmatch(other.name):
                other.unlink(missing_ok=True)
    return handle


def strict_json(text: str, *, halves: bool = False) -> Any:
    """Parse JSON, refusing what JSON does not know, keys given twice, and halves of characters.

    Such `halves` may be allowed: names of files that are no text have them.
    """
    parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twins)
    if not halves and re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half a character (a lone surrogate)") from None
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is given twice")
    return members


def json_number(value: float) -> float | str:
    """Return a number as JSON can hold it: what is not finite becomes the string "infinity".

    >>> json_number(0.5), json_number(float("inf"))
    (0.5, 'infinity')
    """
    return value if math.isfinite(value) else "infinity"


def json_plain(value: Any) -> Any:
    """Return plain data with every number in it as JSON can hold it; see `json_number`.

    >>> json_plain({"budgets": (1, float("inf")), "name": "open"})
    {'budgets': [1, 'infinity'], 'name': 'open'}
    """
    if isinstance(value, dict):
        return {name: json_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_plain(item) for item in value]
    return json_number(value) if isinstance(value, float) and not math.isnan(value) else value
