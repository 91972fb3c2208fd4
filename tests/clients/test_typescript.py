"""The TypeScript client agrees with Python byte by byte, under Node and in a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from client_vectors import FOLDER, bad_reports, judged_documents, report_vectors, written
from conftest import AT_MOST
from typescript import BUNDLE, CLIENT, node_fixture, tools_fixture

__all__ = ["node_fixture", "tools_fixture"]

TESTS = Path(__file__).resolve().parents[1]
PUBLISHED = [
    *sorted(FOLDER.glob("*.json")), TESTS / "mechanisms" / "memory_vectors.json",
    TESTS / "ledger" / "ledger_vectors.json",
]  # fmt: skip
FEW, MANY = 1000, 10_000


def run(*command: object, folder: Path = CLIENT) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=AT_MOST
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    return done.stdout


def test_published_vectors_come_out_as_in_python(node: str) -> None:
    counts = json.loads(run(node, "test/vectors.mjs", BUNDLE, *PUBLISHED))
    assert counts["memos"] == 60
    assert counts["words"] == 6
    assert min(counts[kind] for kind in ("ledgers", "bad ledgers", "admissions", "thresholds")) >= 2
    assert counts["bad documents"] == len(json.loads((FOLDER / "bad_documents.json").read_text("utf-8")))


@pytest.mark.parametrize("many", [FEW, pytest.param(MANY, marks=pytest.mark.deep)])
def test_vectors_of_every_family_agree(node: str, tmp_path: Path, many: int) -> None:
    """All reports of the large set are made from the same bytes in both languages, and are the same bytes."""
    vectors = list(report_vectors(2026, many))
    reports, bad = tmp_path / "large_reports.json", tmp_path / "large_bad_reports.json"
    reports.write_text(written(vectors), "utf-8")
    bad.write_text(written(list(bad_reports(2026, many // 10))), "utf-8")
    counts = json.loads(run(node, "test/vectors.mjs", BUNDLE, reports, bad))
    for family in {vector["family"] for vector in vectors}:
        assert counts[family] >= many
    assert counts["bad reports"] >= many


def test_changed_documents_are_taken_or_refused_as_in_python(node: str, tmp_path: Path) -> None:
    documents = tmp_path / "documents.json"
    vectors = list(judged_documents(7, 1500, tmp_path))
    assert sum(vector["accepted"] for vector in vectors) > 50
    documents.write_text(written(vectors), "utf-8")
    assert json.loads(run(node, "test/vectors.mjs", BUNDLE, documents)) == {"changed documents": len(vectors)}


def test_a_device_answers_once_whatever_fails(node: str) -> None:
    run(node, "--test", "test/client.test.mjs")


def test_types_hold(tools: Path) -> None:
    run(tools / "tsc", "--noEmit")


def test_the_bundle_is_built_from_its_sources(node: str, tools: Path, tmp_path: Path) -> None:
    del tools
    run(node, "build.mjs", tmp_path / "client.js")
    assert (tmp_path / "client.js").read_text("utf-8") == BUNDLE.read_text("utf-8"), "run `make client`"


def test_the_package_needs_nothing_at_run_time() -> None:
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert "dependencies" not in package
    assert "import " not in BUNDLE.read_text("utf-8").replace("import_", "")


def test_what_does_not_agree_is_seen(node: str, tmp_path: Path) -> None:
    vectors = json.loads((FOLDER / "reports.json").read_text("utf-8"))
    wrong = vectors[0]["reports"][0]
    vectors[0]["reports"][0] = wrong[:-2] + f"{int(wrong[-2:], 16) ^ 1:02x}"
    changed = tmp_path / "reports.json"
    changed.write_text(json.dumps(vectors), "utf-8")
    with pytest.raises(AssertionError, match="record"):
        run(node, "test/vectors.mjs", BUNDLE, changed)
