"""People's words in a TOML file outlive the commands that write it anew."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.foundation.toml_comments import carried_over

WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12).map(
    lambda text: f"# {text}"
)

WRITTEN = '''# the whole survey
#without a space

version = 3   # since May
purpose = """not # a comment
either # this""" # after a text of two lines
[limits]  # agreed with the board
"a # b" = 2.0 # a name with a hash
# about sex
sex = 1.0

[[release]]
# why age
attribute = "age"
values = [
  # the young
  "a#1",  # first
  'b',
] # closed
[[release]]
attribute = "sex" # as asked in 2011
[release.parameters] # of the mechanism
width = 2 # wide

# the last word
'''


def test_every_comment_goes_with_its_statement() -> None:
    new = (
        'version = 3\nlimit = 2.0\n\n[limits]\nsex = 3.0\n"a # b" = 1.0\n\n[[release]]\nattribute = "sex"\n'
        '\n[release.parameters]\nwidth = 4\n\n[[release]]\nattribute = "zip"\n'
    )
    text = carried_over(WRITTEN, new, "attribute")
    assert tomllib.loads(text) == tomllib.loads(new)
    lines = text.splitlines()
    assert lines[:3] == ["# the whole survey", "#without a space", "version = 3  # since May"]
    assert "[limits]  # agreed with the board" in lines
    assert '"a # b" = 1.0  # a name with a hash' in lines
    assert lines[lines.index("sex = 3.0") - 1] == "# about sex"
    assert 'attribute = "sex"  # as asked in 2011' in lines
    assert "[release.parameters]  # of the mechanism" in lines
    assert "width = 4  # wide" in lines
    ends = lines[lines.index('attribute = "zip"') + 2 :]
    assert ends == [
        "# purpose:", "# after a text of two lines",
        "# release age attribute:", "# why age",
        "# release age values:", "# the young", "# first", "# closed",
        "# the last word",
    ]  # fmt: skip


def test_comments_survive_again_and_again() -> None:
    new = 'version = 3\n\n[[release]]\nattribute = "sex"\n'
    once = carried_over(WRITTEN, new, "attribute")
    assert carried_over(once, new, "attribute") == once


@given(
    names=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True),
    comments=st.lists(st.tuples(st.integers(0, 60), WORDS), max_size=6),
    kept=st.sets(st.integers(0, 3)),
)
def test_no_comment_is_lost_and_no_value_changed(
    names: list[str], comments: list[tuple[int, str]], kept: set[int]
) -> None:
    schema = sl.Schema(tuple(sl.categorical(name, ["x # y", 'z"', "'"]) for name in names))
    plan = sl.Plan.uniform(schema, limit=1.0, limits={names[0]: 2.0})
    plan = replace(plan, purpose='a """text""" # with\nmarks', reasons={names[-1]: "'''"})
    lines = plan.to_toml().split("\n")
    for at, comment in sorted(comments, reverse=True):
        lines.insert(at % (len(lines) + 1), comment)
    old = "\n".join(lines)
    if tomllib.loads(old) != tomllib.loads(plan.to_toml()):
        return  # a comment fell into a value
    other = replace(
        plan.withholding([name for at, name in enumerate(names) if at in kept][: len(names) - 1]), limit=None
    )
    text = carried_over(old, other.to_toml(), "attribute")
    assert sl.Plan.from_toml(text) == other
    for _, comment in comments:
        assert comment.rstrip() in text


@pytest.mark.parametrize("old", ["", "= broken", "[[[", "x = 'open"])
def test_what_is_no_toml_says_nothing(old: str) -> None:
    assert carried_over(old, "limit = 1.0\n", "attribute") == "limit = 1.0\n"


def test_a_value_is_never_changed_for_a_comment() -> None:
    old = 'purpose = """four quotes""""  # said\nlimit = 1.0  # agreed\n'
    text = carried_over(old, 'purpose = "x"\nlimit = 2.0\n', "attribute")
    assert tomllib.loads(text) == {"purpose": "x", "limit": 2.0}
    assert "# said" in text
    assert "# agreed" in text


def test_a_plan_written_over_or_made_from_another_keeps_its_comments(tmp_path: Path) -> None:
    plan = sl.Plan.uniform(sl.sources.titanic().schema, limit=1.0)
    path = plan.write(tmp_path / "plan.toml")
    path.write_text("# agreed in May\n" + path.read_text())
    replace(plan, limit=2.0).write(path)
    assert path.read_text().startswith("# agreed in May\nversion = 1\nlimit = 2.0")
    other = plan.write(tmp_path / "other.toml", like=path)
    assert other.read_text().startswith("# agreed in May\n")
    other.write_text("# my own\n" + plan.to_toml())
    plan.write(other, like=path)
    assert other.read_text().startswith("# my own\nversion")
    assert "#" not in plan.write(tmp_path / "plan.json", like=path).read_text()
    plan.write(tmp_path / "plan.json", like=path)
    assert sl.Plan.read(plan.write(tmp_path / "third.toml", like=tmp_path / "plan.json")) == plan
