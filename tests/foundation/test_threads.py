"""Threads: compiled loops in ranges, and one thread for products of matrices."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sidelight.foundation import threads
from sidelight.foundation.threads import in_ranges, one_thread


def of_blas() -> set[int]:
    return {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}


def test_the_last_to_leave_lifts_the_limit_whoever_came_first() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before, first, second = of_blas(), one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert of_blas() == {1}
        second.__exit__(None, None, None)
        assert of_blas() == before == {2}


def test_libraries_that_are_loaded_later_are_limited_too(monkeypatch) -> None:
    made = []
    monkeypatch.setattr("threadpoolctl.ThreadpoolController", lambda: made.append(True) or _Controller())
    threads._controller.cache_clear()
    monkeypatch.setattr(threads, "_LIMIT", threads._Limit())
    with one_thread():
        monkeypatch.setitem(threads.sys.modules, "a library of its own", threads)
        with one_thread():
            assert len(made) == 2
        assert _Controller.limited == 2
    assert _Controller.limited == 0
    threads._controller.cache_clear()


class _Controller:
    """Counts how many limits it holds."""

    limited = 0

    def limit(self, **_: object) -> _Controller:
        _Controller.limited += 1
        return self

    def restore_original_limits(self) -> None:
        _Controller.limited -= 1


@pytest.mark.parametrize("count", [0, 1, 64, 65, 1000])
@pytest.mark.parametrize("processors", [1, 2, 7])
def test_ranges_make_up_everything_once(count: int, processors: int, monkeypatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: processors)
    seen: list[tuple[int, int]] = []
    in_ranges(lambda first, last: seen.append((first, last)), count, 64)
    assert [place for first, last in sorted(seen) for place in range(first, last)] == list(range(count))
    assert all(first % 64 == 0 for first, _ in seen)


def test_what_goes_wrong_in_a_range_is_raised(monkeypatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 2)

    def fail(first: int, last: int) -> None:
        if first <= 700 < last:
            raise MemoryError("no room for 700")

    with pytest.raises(MemoryError, match="no room for 700"):
        in_ranges(fail, 1000, 64)
