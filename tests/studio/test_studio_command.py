"""The command `studio` on bad input: one line, exit code 2, and nobody's file is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio_cases import titanic


@pytest.mark.parametrize(
    ("arguments", "said_so"),
    [
        (["nobody.csv"], "nobody.csv"),
        (["-"], "name a file, not standard input"),
        (["people.csv", "--state", "state.txt"], "state.txt must end in .json"),
        (["people.csv", "--state", "nowhere/state.json"], "cannot be written"),
        (["people.csv", "--state", "theirs.json"], "theirs.json is no studio state"),
        (["people.csv", "--port", "70000"], "port"),
        (["people.csv", "--drop", "nobody"], "nobody"),
        (["people.csv", *(f"--drop={name}" for name in ("class", "age", "sex", "survived"))], "people.csv"),
        (["nobody.toml"], "nobody.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(run, tmp_path: Path, monkeypatch, arguments: list[str], said_so: str) -> None:
    monkeypatch.chdir(tmp_path)
    titanic(tmp_path)
    theirs = tmp_path / "theirs.json"
    theirs.write_text('{"mine": 1}', encoding="utf-8")
    found = run("studio", "--no-browser", *arguments)
    assert (found.code, found.out) == (2, "")
    assert said_so in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert theirs.read_text("utf-8") == '{"mine": 1}'
