"""What came out of a run, in words: the answers that people come for, made from plain facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Mapping[str, Any]]


def answers_of(facts: Facts) -> list[list[str]]:
    """Return the questions that people come with, each with its answer; those of steps that are done."""
    answers: list[tuple[str, list[str]]] = []
    if "audit" in facts:
        stated = "This is about the plan as stated, before any calibration."
        answers += [
            ("What is the worst risk?", [facts["audit"]["risk"], stated]),
            ("For whom?", [facts["audit"]["whom"]]),
        ]
    if "plan" in facts:
        answers.append(("What should we do?", _advice(facts)))
    if "estimates" in facts:
        answers.append(("What will it cost?", _price(facts["estimates"])))
    if "attack" in facts:
        answers.append(("Does an attack on the planned reports succeed?", _attacked(facts["attack"])))
    return [[question, " ".join(said)] for question, said in answers]


def code_of(facts: Facts) -> int:
    """Return the exit code: 0 if what is planned is certified to keep all limits, or there are none."""
    return 1 if facts["plan"]["within"] is False else 0


def _advice(facts: Facts) -> list[str]:
    """Say what to do: the calibrated plan or the plan as it is, and the best remedy, the cheaper first."""
    plan, audit = facts["plan"], facts["audit"]
    ways = facts["remedies"]["remedies"] if "remedies" in facts else []
    best = [f"Another way, in {ways[0]['file']}: {ways[0]['says']} {ways[0]['use']}"] if ways else []
    if plan["calibrated"] and plan["keeps"]:
        kept = ["Collect by plan.toml: its budgets are the largest that are certified to keep every limit.",
                f"What is left then: {plan['risk']}"]  # fmt: skip
        if ways and _is_cheaper(ways[0], facts):
            cheapest = f"Cheapest is {ways[0]['file']}: {ways[0]['says']} {ways[0]['use']}"
            return [
                cheapest,
                "It keeps every limit too. To have every answer from every person instead:",
                *kept,
            ]
        return [*kept, *best]
    if plan["calibrated"]:
        return [
            "Do not collect yet: not even the budgets of plan.toml are certified to keep every limit.",
            *best,
        ]
    if not audit["judged"]:
        return ["Set a limit for each secret in the project file; then a run judges, and finds budgets."]
    if audit["over"]:
        return [f"Do not collect by these budgets. No others were found: {plan['reason']}", *best]
    return ["Collect as stated: plan.toml keeps every limit."]


def _is_cheaper(way: Mapping[str, Any], facts: Facts) -> bool:
    """Whether a remedy collects all that the plan collects, with a smaller error."""
    planned = facts.get("estimates")
    if planned is None or "infinity" in (way["error"], planned["error"]):
        return False
    return bool(way["attributes"] >= len(facts["plan"]["budgets"]) and way["error"] < planned["error"])


def _price(estimates: Mapping[str, Any]) -> list[str]:
    """Say what the estimates will be worth, and how many people would make them useful."""
    said = [estimates["headline"]]
    people, needed, useful = (
        estimates[key] for key in ("expected_people", "people_needed", "people_for_use")
    )
    if estimates["verdict"] != "useful":
        many = "No number of people makes" if useful is None else f"About {useful:,} people would make"
        said.append(f"{many} them useful: at most half as far off as a guess.")
    if estimates["precision"] is not None:
        wanted = f"{100 * estimates['precision']:g} percentage points for every attribute"
        if needed is None:
            said.append(f"No number of people gives {wanted}.")
        elif needed <= people:
            said.append(f"The wanted {wanted} are reached: about {needed:,} people are enough.")
        else:
            said.append(
                f"For the wanted {wanted}, about {needed:,} people are needed; {people:,} are expected."
            )
    return said


def _attacked(attack: Mapping[str, Any]) -> list[str]:
    """Say what the most damning attack showed."""
    said = [attack["sentence"]]
    if attack["left"]:
        said.append(f"Not attacked: {', '.join(attack['left'][:5])}{', ...' * (len(attack['left']) > 5)}.")
    return said
