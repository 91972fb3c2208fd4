"""Plans: frozen, versioned, strict about what they read, and the same after a round trip."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.protocols import read_protocol, spl, write_protocol

LABELS = st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=5, unique=True)
NAMES = st.text(min_size=1, max_size=8)
WORDS = st.text(max_size=9)


@st.composite
def plans(draw: st.DrawFn) -> sl.Plan:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    releases = tuple(
        sl.Release(
            sl.categorical(name, [label for label in draw(LABELS) if label not in ("(missing)",)] + ["z z"]),
            draw(st.sampled_from(["grr", "any"])),
            draw(st.floats(1e-6, 20)),
            draw(st.integers(1, 5)),
            reason=draw(WORDS),
        )
        for name in names
    )
    delta = draw(st.none() | st.floats(1e-9, 0.5))
    deciders = ["report", "model guess", None] if delta is None else ["population", "table", "tree", None]
    return sl.Plan(
        releases, draw(st.none() | st.floats(0, 10)), {names[0]: draw(st.floats(0, 10))}, draw(WORDS),
        delta, draw(st.sampled_from(deciders)), draw(st.dictionaries(NAMES, WORDS, max_size=2)), draw(WORDS),
    )  # fmt: skip


@given(plans())
def test_plans_survive_toml_and_json(plan: sl.Plan) -> None:
    assert sl.Plan.from_toml(plan.to_toml()) == plan
    assert sl.Plan.from_json(plan.to_json()) == plan


def test_a_plan_is_written_in_the_oldest_version_that_has_what_it_uses() -> None:
    schema = sl.sources.titanic().schema
    plan = sl.Plan.uniform(schema, limit=1.0)
    assert "version = 1" in plan.to_toml()
    newer = [
        replace(plan, limit=None), replace(plan, delta=0.01), replace(plan, decide_by="report"),
        replace(plan, reasons={"sex": "health data"}), replace(plan, purpose="a survey"),
        replace(plan, releases=(replace(plan.releases[0], reason="it is asked for"), *plan.releases[1:])),
    ]  # fmt: skip
    for other in newer:
        assert "version = 3" in other.to_toml()
        assert sl.Plan.from_toml(other.to_toml()) == other
    for other in newer[1:]:
        with pytest.raises(sl.InputError, match=r"needs `version = 3`, got 1"):
            sl.Plan.from_toml(other.to_toml().replace("version = 3", "version = 1"))


def test_a_file_without_a_limit_means_what_its_version_meant() -> None:
    text = sl.Plan.uniform(sl.sources.titanic().schema).to_toml()
    assert "limit" not in text
    assert sl.Plan.from_toml(text).limit is None
    for old in (1, 2):
        assert sl.Plan.from_toml(text.replace("version = 3", f"version = {old}")).limit == 1.0


def test_nothing_that_a_plan_says_is_lost_when_attributes_are_withheld() -> None:
    plan = replace(
        sl.Plan.uniform(sl.sources.titanic().schema, limit=2.0, limits={"sex": 1.0}),
        origin="o", delta=0.01, decide_by="population", reasons={"sex": "r"}, purpose="p",
    )  # fmt: skip
    assert plan.withholding(["age"]) == replace(
        plan, releases=tuple(item for item in plan.releases if item.name != "age")
    )


def test_numeric_attributes_keep_every_bit(tmp_path: Path) -> None:
    attribute = sl.numeric("gain", [0.1 + 0.2, math.nextafter(5, 6)], missing="value")
    plan = sl.Plan.uniform(sl.Schema((attribute,)), epsilon=0.1 + 0.2, limit=math.inf)
    for name in ("plan.toml", "plan.json"):
        plan.write(tmp_path / name)
        assert sl.Plan.read(tmp_path / name) == plan


def test_a_plan_is_frozen_and_gives_channels() -> None:
    schema = sl.sources.titanic().schema
    plan = sl.Plan.uniform(schema, epsilon=2.0, limit=1.0, limits={"sex": 0.5})
    with pytest.raises(FrozenInstanceError):
        plan.limit = 3
    assert plan.limit_of("sex") == 0.5
    assert plan.limit_of("age") == 1.0
    assert plan.withholding(["age"]).names == ("class", "sex", "survived")
    assert plan.channels()["class"].epsilon == pytest.approx(2.0)
    often = sl.Release(schema["sex"], "grr", 1.0, times=3).channel()
    assert (often.claim, often.epsilon) == ("exact", pytest.approx(3.0))
    daily = sl.Release(schema["sex"], "grr", 1.0, times=100_000).channel()
    assert (daily.claim, daily.epsilon) == ("certified", pytest.approx(100_000.0))


def edited(**changes: object) -> str:
    data = json.loads(sl.Plan.uniform(sl.sources.titanic().schema, limit=1.0).to_json())
    for key, value in changes.items():
        if key.startswith("release_"):
            data["release"][0][key.removeprefix("release_")] = value
        else:
            data[key] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not valid JSON"),
        ("[1]", "is no plan: it must start with `version = 3`"),
        (edited(version=99), "version 99; this Sidelight reads up to version 3. Upgrade Sidelight"),
        (edited(version=True), "is no plan"),
        (edited(extra=1), r"there is no key 'extra'\. There are: version, release, limit"),
        (
            edited(release_epsilon=-1),
            "`epsilon of class` must be a finite number above 0 and below 700, got -1",
        ),
        (edited(release_epsilon="1"), "release.0.epsilon"),
        (
            edited(release_mechanism="magic"),
            "the release of 'class': `mechanism` must be one of 'grr', 'sue'",
        ),
        (edited(release_values=["a", "a"]), "lists the value 'a' twice"),
        (edited(release_values=[]), "1 to 65536 values"),
        (edited(release_times=0), "`times of class` must be a whole number of at least 1"),
        (edited(release_parameters={"x": 1}), "has no parameter 'x'; it takes none"),
        (edited(release=[]), "at least one attribute"),
        (edited(version=3, delta=0), "`delta` must be a finite number above 0 and below 1"),
        (edited(version=3, delta="0.1"), "delta: Input should be a valid number"),
        (edited(version=3, decide_by="nobody"), "decide_by: Input should be 'report', 'guess'"),
        (edited(version=3, decide_by="table"), "kept for 'table' needs a delta, as in `delta = 0.001`"),
        (edited(version=3, reasons={"sex": 1}), "reasons.sex: Input should be a valid string"),
        (edited(version=3, release_reason=["x"]), "release.0.reason: Input should be a valid string"),
        (edited(purpose="x"), "purpose needs `version = 3`, got 1"),
        (edited(release_reason="x"), "the reason of class needs `version = 3`, got 1"),
        (edited(limit=-1), "`limit` must be a number of at least 0"),
        (edited(limits={"sex": -1}), "`limit of sex` must be"),
        (edited().replace('"limit": 1.0', '"limit": NaN'), "not a number JSON knows"),
        (edited().replace('"limit": 1.0', '"limit": 1.0, "limit": 2.0'), "given twice"),
    ],
)
def test_bad_plans_are_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(sl.InputError, match=words) as caught:
        sl.Plan.from_json(text, "plan.json")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("plan.json")


def test_plan_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(sl.InputError, match=r"must end in .toml or .json"):
        sl.Plan.read(tmp_path / "plan.yaml")
    with pytest.raises(sl.InputError, match="No such file"):
        sl.Plan.read(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(sl.InputError, match="not UTF-8 text"):
        sl.Plan.read(tmp_path / "plan.toml")
    with pytest.raises(sl.InputError, match="two attributes|listed twice"):
        sl.Plan((sl.Release(sl.sources.titanic().schema["sex"], "grr", 1.0),) * 2)


@pytest.mark.parametrize(
    ("written", "typo", "meant"),
    [
        ('"mechanism"', '"mechansim"', "release.0: there is no key 'mechansim'; did you mean 'mechanism'?"),
        ('"values"', '"vlaues"', "release.0: there is no key 'vlaues'; did you mean 'values'?"),
        ('"limit"', '"limt"', "plan.json: there is no key 'limt'; did you mean 'limit'?"),
        ('"release"', '"realease"', "plan.json: there is no key 'realease'; did you mean 'release'?"),
        ('"grr"', '"GRR"', "got 'GRR'. Did you mean 'grr'?"),
        ('"grr"', '"grrr"', "got 'grrr'. Did you mean 'grr'?"),
        ('"categorical"', '"catagorical"', "kind: Input should be 'categorical', 'ordinal', 'numeric'"),
    ],
)
def test_a_typo_in_a_plan_is_named_as_such(written: str, typo: str, meant: str) -> None:
    text = edited().replace(written, typo, 1)
    with pytest.raises(sl.InputError) as caught:
        sl.Plan.from_json(text, "plan.json")
    assert meant in str(caught.value)
    assert typo.strip('"') in str(caught.value)


def test_a_typo_in_a_parameter_names_the_one_that_is_meant() -> None:
    with pytest.raises(sl.InputError, match=r"no parameter 'widht'; it takes width\. Did you mean 'width'"):
        sl.Plan.from_json(edited(release_mechanism="ss", release_parameters={"widht": 1}))


@pytest.mark.parametrize(("key", "option"), [("protocol", "protocol"), ("second", "parameters")])
def test_a_protocol_is_no_plan_and_says_what_is_certified_of_it(key: str, option: str) -> None:
    with pytest.raises(sl.InputError, match=f"no plan; `sidelight collect --{option}` takes it.*certified"):
        sl.Plan.from_toml(f'version = 1\nround = 1\n{key} = "sets"\n')


def test_a_typo_in_a_protocol_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    write_protocol(spl(sl.sources.titanic().schema, 1.0), path)
    path.write_text(path.read_text().replace('"mechanism"', '"mechansim"', 1))
    with pytest.raises(sl.InputError, match=r"unit\.0: there is no key 'mechansim'; did you mean"):
        read_protocol(path)


def test_memory_is_part_of_a_plan_and_of_its_channels() -> None:
    attribute = sl.categorical("colour", ["red", "green", "blue"])
    fresh = sl.Release(attribute, "rappor", 1.0, times=30)
    kept = sl.Release(attribute, "rappor", 1.0, times=30, memory="kept")
    bare = sl.Release(attribute, "grr", 1.0, times=30, memory="kept")
    longitudinal = sl.Release(attribute, "l-grr", 1.0, times=30)
    forgetful = sl.Release(attribute, "l-grr", 1.0, times=30, memory="fresh")
    plan = sl.Plan((kept,), limit=1.0)
    assert plan.to_toml().startswith("version = 3")
    assert sl.Plan.from_toml(plan.to_toml()) == sl.Plan.from_json(plan.to_json()) == plan
    assert fresh.channel().epsilon == pytest.approx(30 * fresh.randomiser().epsilon)
    assert fresh.randomiser().epsilon < kept.channel().epsilon <= 1.0
    assert bare.channel() == bare.randomiser().channel
    assert longitudinal.channel().epsilon <= 1.0
    assert [item.often for item in (fresh, kept)] == [", 30 times", ", 30 times from a kept response"]
    assert [item.keeps for item in (fresh, kept, longitudinal, forgetful)] == [False, True, True, False]
    assert sl.Release(attribute, "l-grr", 1.0).often == ""
    assert forgetful.channel().epsilon == pytest.approx(15.0)
    with pytest.raises(sl.InputError, match="`memory of colour` must be one of"):
        sl.Release(attribute, "grr", 1.0, times=2, memory="lost")
    older = plan.to_toml().replace("version = 3", "version = 2")
    with pytest.raises(sl.InputError, match="the memory of colour needs `version = 3`"):
        sl.Plan.from_toml(older)
