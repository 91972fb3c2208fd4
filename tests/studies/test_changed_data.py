"""No verdict is a constant: for every study, what its rule asks for and changed data end differently."""

from __future__ import annotations

import pytest
from tests.studies.made_up import FOUND

from sidelight.studies.register import CATALOGUE, find_study
from sidelight.studies.study import OURS


@pytest.mark.parametrize("name", CATALOGUE)
def test_changed_data_change_the_verdict(name: str) -> None:
    study = find_study(name)
    met, changed = (study.judge(FOUND[name](is_met)).verdict for is_met in (True, False))
    assert met.kind != changed.kind, study.rule
    wanted = {"measured"} if study.paper == OURS else {"reproduced", "not possible"}
    assert met.kind in wanted, met.reason
    assert changed.kind in {"differs", "refuted"} or name == "pdp-fig4d", changed.reason
    assert bool(met.counter_example) is False
    assert bool(changed.counter_example) == (changed.kind == "refuted")


def test_every_study_states_its_rule_and_has_its_cases() -> None:
    assert set(FOUND) == set(CATALOGUE)
    for name, listing in CATALOGUE.items():
        assert listing.rule, name
        assert listing.rule[0].islower(), "it follows a colon on the page"
        assert not listing.rule.endswith("."), name
