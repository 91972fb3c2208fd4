"""How results show themselves at a prompt and in a notebook: one line, and a small escaped table."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.foundation.html import html_table

LINES = {
    "audit": r"Audit\(2 secrets, 2 releases: 1 exceeded, 1 within\)",
    "secret": r"SecretAudit\(<b>: total \d\.\d+ to \d\.\d+, limit 1, exceeded\)",
    "calibration": r"Calibration\(table: 2 budgets, 0\.\d+ to \d\.?\d*; limits certified; [a-z ]+\)",
    "estimates": r"Estimates\(2 attributes from 200 reports; spl, best, .+ error 0\.\d+; .+ guessing\)",
    "advice": r"Advice\(.+, of \d+ protocols for 200 people, epsilon 1; useful\)",
    "knowledge": r"KnowledgeAudit\(sum, 2 targets: worst \d\.?\d* for .+ knowing .+\)",
    "attack": r"AttackResult\(Bayes, .+ on <b>: error rate 0\.\d+, control 0\.\d+, .+\)",
}


@pytest.fixture(scope="module")
def results() -> dict[str, object]:
    belief = sl.Belief.from_counts([[70, 20], [30, 80]], ["<b>", "c"])
    plan = sl.Plan.uniform(belief, limit=1.0, limits={"c": 9.0})
    table = sl.read(_rows([[70, 20], [30, 80]]), schema=belief.schema)
    reports = sl.collect(table, plan, seed=1)
    audit = sl.audit(belief, plan)
    return {
        "table": table,
        "schema": belief.schema,
        "plan": plan,
        "belief": belief,
        "collected": reports,
        "audit": audit,
        "secret": audit["<b>"],
        "calibration": sl.calibrate(belief),
        "estimates": sl.estimate(reports),
        "advice": sl.advise(belief.schema, 1.0, 200),
        "knowledge": sl.knowledge_audit(belief, sl.Query.sum(belief)),
        "attack": sl.attack(reports, sl.BayesAttacker(belief), secret="<b>", truth=table),
    }


def _rows(counts: list[list[int]]) -> pa.Table:
    pairs = [(i, j) for i, row in enumerate(counts) for j, count in enumerate(row) for _ in range(count)]
    return pa.table({"<b>": [str(i) for i, _ in pairs], "c": [str(j) for _, j in pairs]})


@pytest.mark.parametrize("name", LINES)
def test_a_result_is_one_line(name: str, results: dict[str, object]) -> None:
    line = repr(results[name])
    assert re.fullmatch(LINES[name], line), line
    assert len(line) < 160


HANDED_IN = ("table", "schema", "plan", "belief", "collected")
"""What goes into an analysis shows itself as well as what comes out."""


@pytest.mark.parametrize("name", sorted({*LINES, *HANDED_IN} - {"secret"}))
def test_a_result_is_a_table_in_a_notebook(name: str, results: dict[str, object]) -> None:
    shown = results[name]._repr_html_()  # type: ignore[attr-defined]
    assert shown.startswith("<table><caption>")
    assert "<b>" not in shown
    widths = {row.count("<td>") + row.count("<th>") for row in shown.split("<tr>")[1:]}
    assert len(widths) == 1
    assert shown.count("<tr>") >= 3


def test_many_rows_are_cut_and_everything_is_escaped() -> None:
    shown = html_table("a&b", ["x", "y"], [[f"<{i}>", None] for i in range(100)])
    assert shown.count("<tr>") == 62
    assert "and 40 more" in shown
    assert "&lt;59&gt;" in shown
    assert "&lt;60&gt;" not in shown
    assert "a&amp;b" in shown


def test_an_audit_is_read_like_a_mapping_of_secrets(results: dict[str, object]) -> None:
    audit = results["audit"]
    assert isinstance(audit, sl.Audit)
    assert (list(audit), len(audit)) == (["<b>", "c"], 2)
    assert "c" in audit
    assert "d" not in audit
    assert audit["c"].verdict == "within"


def test_columns_set_aside_and_parameters_are_shown() -> None:
    table = sl.read(pa.table({"id": [f"p{i}" for i in range(300)], "x": ["a", "b", "c"] * 100}))
    assert "set aside: " in table._repr_html_()
    plan = sl.Plan((sl.Release(table.schema["x"], "ss", 1.0, parameters={"width": 2}),), limits={"x": 3.5})
    assert "<td>width = 2</td><td>3.5</td>" in plan._repr_html_()


def test_a_simulation_says_so_in_a_notebook(results: dict[str, object]) -> None:
    assert "a simulation, which protects nobody" in results["collected"]._repr_html_()  # type: ignore[attr-defined]


def test_a_name_of_3000_characters_does_not_swell_a_table() -> None:
    schema = sl.Schema((sl.categorical("n" * 2999 + "!", ["v" * 3000, "w"]),))
    shown = schema._repr_html_()
    assert len(shown) < 1200
    assert "n!" in shown
