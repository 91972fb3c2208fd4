"""Fingerprints and the cache: what changed is seen, what is damaged is never trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sidelight.foundation import fingerprint as prints
from sidelight.foundation.fingerprint import Digests, checked_known, fingerprint, sealed, unsealed
from sidelight.project.cache import Cache, key_of


def test_a_digest_is_of_the_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    first = Digests().of(str(path))
    state = path.stat()
    path.write_text("a\n2\n")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert Digests().of(str(path)) != first, "the same size and time, other contents"
    path.write_text("a\n1\n")
    assert Digests().of(str(path)) == first, "other times, the same contents"


def test_folders_globs_and_logs_of_databases_count(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    whole, some = str(tmp_path), str(tmp_path / "*.csv")
    before = Digests().of(whole), Digests().of(some)
    (tmp_path / "b.csv").write_text("2")
    assert not set(before) & {Digests().of(whole), Digests().of(some)}
    base = tmp_path / "people.db"
    base.write_text("x")
    alone = Digests().of(str(base))
    Path(f"{base}-wal").write_text("y")
    assert Digests().of(str(base)) != alone
    assert Digests().of(str(tmp_path / "none.csv")) is None


def test_a_large_file_is_read_again_only_if_its_state_changed(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "large.csv"
    path.write_text("1" * 100)
    monkeypatch.setattr(prints, "SMALL", 10)
    digests = Digests()
    fresh = digests.of(str(path))
    assert not digests.is_new, "it was written a moment ago: a change could bear the same time"
    monkeypatch.setattr(prints, "_RACY", -(10**18))
    assert digests.of(str(path)) == fresh
    assert digests.is_new
    read = []
    monkeypatch.setattr(prints, "digest_of_file", lambda place: read.append(place) or "0" * 64)
    assert digests.of(str(path)) == fresh
    assert not read
    path.write_text("2" * 100)
    assert digests.of(str(path)) != fresh
    assert read == [path]


@pytest.mark.parametrize(
    "kept", [[], {"a": []}, {"a": [1, 2, 3, 4, "short"]}, {"a": [1, 2, 3, True, "0" * 64]}]
)
def test_kept_digests_that_are_not_ours_are_dropped(kept: object) -> None:
    assert checked_known(kept) == {}


def test_a_seal_breaks_with_any_change() -> None:
    held = sealed({"a": 1, "b": [2.5]})
    assert unsealed(held, ("a", "b")) == {"a": 1, "b": [2.5]}
    for broken in (held | {"a": 2}, held | {"c": 1}, {"a": 1, "b": [2.5]}, held | {"seal": ""}, []):
        assert unsealed(broken, ("a", "b")) is None
    assert unsealed(held, ("a",)) is None
    assert fingerprint({"a": 1}) != fingerprint({"a": "1"})


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache")
    made.open()
    return made


def put(cache: Cache, step: str, key: str) -> None:
    with cache.workspace() as place:
        page = Path(place) / "page.html"
        page.write_text("<p>")
        cache.put(step, key, {"seconds": 1.5}, {"page.html": page})


def test_an_entry_is_found_again_until_it_is_damaged(cache: Cache) -> None:
    key = key_of("audit", {"limit": 1})
    assert cache.get("audit", key) is None
    put(cache, "audit", key)
    entry = cache.get("audit", key)
    assert entry is not None
    assert entry.facts == {"seconds": 1.5}
    entry.files["page.html"].write_text("<b>")
    assert cache.get("audit", key) is None, "a file was changed"
    put(cache, "audit", key)
    entry.files["page.html"].unlink()
    assert cache.get("audit", key) is None, "a file is gone"
    assert not [path for path in cache.folder.iterdir() if path.name.startswith(".part-")]


@pytest.mark.parametrize("text", ["", "{", "[]", "NaN", '{"key": 1}', '{"seconds": 2.5}', "\xff"])
def test_an_entry_whose_facts_were_changed_is_not_taken(cache: Cache, text: str) -> None:
    key = key_of("audit", {})
    put(cache, "audit", key)
    place = next(cache.folder.glob("audit-*/entry.json"))
    if text == '{"seconds": 2.5}':
        text = json.dumps(json.loads(place.read_text()) | {"facts": {"seconds": 2.5}})
    place.write_bytes(text.encode("latin-1"))
    assert cache.get("audit", key) is None


def test_old_entries_of_a_step_go_and_others_stay(cache: Cache) -> None:
    put(cache, "plan", key_of("plan", {}))
    for number in range(10):
        put(cache, "audit", key_of("audit", {"n": number}))
    assert len(list(cache.folder.glob("audit-*"))) == 6
    assert cache.get("audit", key_of("audit", {"n": 9})) is not None
    assert cache.get("plan", key_of("plan", {})) is not None


def test_the_key_holds_code_and_libraries(monkeypatch) -> None:
    keys = {key_of("audit", {}), key_of("plan", {}), key_of("audit", {"a": 1})}
    monkeypatch.setattr("sidelight.project.cache.code_version", lambda: "another")
    keys.add(key_of("audit", {}))
    monkeypatch.setattr("sidelight.project.cache.library_versions", lambda: ["none"])
    keys.add(key_of("audit", {}))
    assert len(keys) == 5
