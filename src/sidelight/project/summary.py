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
    """Say what to do: a remedy where one was found, the calibrated plan, or the plan as it is."""
    plan, audit = facts["plan"], facts["audit"]
    said = []
    if plan["calibrated"] and plan["keeps"]:
        said.append(
            "Collect by plan.toml: its budgets are the largest that are certified to keep every limit."
        )
        said.append(f"What is left then: {plan['risk']}")
    elif plan["calibrated"]:
        said.append(
            "Do not collect yet: even the budgets of plan.toml are not certified to keep every limit."
        )
    elif not audit["judged"]:
        said.append("Set a limit for each secret in the project file; then a run judges, and finds budgets.")
    elif audit["over"]:
        said.append(f"Do not collect by these budgets. No others were found: {plan['reason']}")
    else:
        said.append("Collect as stated: plan.toml keeps every limit.")
    ways = facts["remedies"]["remedies"] if "remedies" in facts else []
    said += [f"Another way back, in {ways[0]['file']}: {ways[0]['says']} {ways[0]['use']}"] if ways else []
    return said


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
