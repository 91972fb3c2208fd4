"""Progress: silent in a library call, and a figure that changes on the way where a terminal shows it."""

from __future__ import annotations

import pytest

from sidelight.foundation.progress import progress_bars, steps, track, tracking


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


def test_steps_of_work_that_is_no_loop_are_told_one_by_one_and_end_with_it() -> None:
    told: list[str] = []

    def tracker(items, description, total):
        assert total is None
        try:
            for item in items:
                told.append(description())
                yield item
        finally:
            told.append("end")

    numbers: list[int] = []
    with tracking(tracker), steps(lambda: f"number {numbers[-1]}") as step:
        for number in (4, 2):
            numbers.append(number)
            step()
    assert told == ["number 4", "number 2", "end"]
    with steps(lambda: "nobody looks") as step:
        step()
        step()
