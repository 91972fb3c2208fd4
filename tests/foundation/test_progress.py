"""Progress: silent in a library call, and a figure that changes on the way where a terminal shows it."""

from __future__ import annotations

import pytest

from sidelight.foundation.progress import progress_bars, track


def test_a_description_may_change_from_item_to_item(monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    asked = []

    def described() -> str:
        asked.append(len(asked))
        return f"figure {len(asked)}"

    with progress_bars():
        assert list(track([7, 8], described)) == [7, 8]
    assert asked == [0, 1, 2]  # at the start, and after each item
    assert "figure" in capsys.readouterr().err


@pytest.mark.parametrize("is_shown", [False, True])
def test_no_description_is_worked_out_where_nobody_looks(monkeypatch, capsys, is_shown: bool) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def refused() -> str:
        raise AssertionError

    if is_shown:
        with progress_bars():  # standard error is no terminal here
            assert list(track([1, 2], refused)) == [1, 2]
    assert list(track([1, 2], refused)) == [1, 2]
    assert capsys.readouterr().err == ""


def test_an_interruption_passes_and_leaves_no_tracker(monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    def interrupted() -> None:
        for _ in track([1, 2], lambda: "figure"):
            raise KeyboardInterrupt

    def run() -> None:
        with progress_bars():
            interrupted()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(track([1], lambda: "nothing")) == [1]
