"""The command `attack`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import sidelight as sl
from sidelight.cli.common import Shown, first_given, progress, show
from sidelight.cli.options import Data, Encoding, Kinds, Names, SchemaFile, flag, grouped, stated_kinds
from sidelight.foundation.errors import InputError, check_choice


@dataclass(frozen=True)
class Simulated:
    """How a release is simulated on half of a table, and attacked."""

    noise: str | None = flag(
        None, "'laplace' [the default], 'gaussian', 'gaussian-classic', 'interval' or 'swap'."
    )
    epsilon: float | None = flag(None, "The secret's budget [1].")
    leniency: float | None = flag(None, "The other attributes' budgets over the secret's [1].")
    share: float | None = flag(None, "Share of swapped values, for 'swap' [0.5].")
    model: str | None = flag(
        None, "'mlp' [the default], 'cnn', 'rnn', 'lstm', 'attention', 'boosted' or 'imputation'."
    )
    through: Names = flag(None, "Another attribute; repeatable. All numeric ones by default.")
    entity: str | None = flag(None, "The column that says whose record it is.")


@dataclass(frozen=True)
class Known:
    """What is known about a file of reports, and how a table is read."""

    truth: str | None = flag(
        None, "The true records, where DATA is a file of reports; of one phase, or of all people."
    )
    belief_from: str | None = flag(
        None,
        "Whom the attacker has counted: 'others' [the default], half of the true records, so that the other "
        "half is attacked; 'everyone'; or a table of other people.",
    )
    parameters: Path | None = flag(
        None, "The published parameters, where DATA is a second phase of all people."
    )
    seed: int | None = flag(None, "Of the simulated noise and the training [0].")
    schema: SchemaFile = None
    kinds: Kinds = None
    encoding: Encoding = "utf-8"


@grouped()
def attack(
    data: Data, secret: Annotated[str, typer.Option(help="The attribute that is attacked.")],
    simulated: Simulated, known: Known, shown: Shown,
) -> None:  # fmt: skip
    """Attack a release: simulated on half of a table, or a file of reports against its true records.

    On a file of reports the attack is Bayes' rule: noise, budgets and models are what the file says.
    """
    from sidelight.attacks.released import is_reports_file

    with progress(quiet=shown.json):
        if is_reports_file(data):
            options = {f"--{name}": value for name, value in vars(simulated).items()} | {"--seed": known.seed}
            _refuse(options, f"{data} holds reports, made as the file says, and the attack is Bayes' rule")
            result = _on_reports(data, secret, known)
        else:
            of_reports = {
                "--truth": known.truth, "--belief-from": known.belief_from,
                "--parameters": known.parameters, "--schema": known.schema, "--kind": known.kinds,
            }  # fmt: skip
            _refuse(of_reports, f"{data} holds no reports, so its records are the truth")
            result = _on_numbers(data, secret, simulated, known.seed or 0, known.encoding)
    show(result, shown, lambda: sl.report.print_attack(result))


def _refuse(options: Mapping[str, object], reason: str) -> None:
    if name := first_given(options):
        raise InputError(f"{reason}; leave {name} out.")


def _noise(simulated: Simulated) -> tuple[sl.attacks.Noise, float]:
    """Return the family of noise and its level."""
    epsilon, leniency, share = simulated.epsilon, simulated.leniency, simulated.share
    family = sl.attacks.Noise(
        "laplace" if simulated.noise is None else simulated.noise,  # type: ignore[arg-type]
        1.0 if leniency is None else leniency,
    )
    if family.has_budget:
        _refuse({"--share": share}, f"{family.family} noise has a budget and no share")
        return family, 1.0 if epsilon is None else epsilon
    _refuse({"--epsilon": epsilon, "--leniency": leniency}, "swaps have a share and no budget")
    if simulated.entity is None:
        raise InputError("swaps stay among the records of one entity; name its column with --entity.")
    return family, 0.5 if share is None else share


def _on_numbers(
    data: str, secret: str, simulated: Simulated, seed: int, encoding: str
) -> sl.attacks.AttackComparison:
    """Give half of the records to the attacker, release the other half, and attack it."""
    from sidelight.attacks.numbers import read_numbers
    from sidelight.attacks.reconstruction import MODELS

    noise, level = _noise(simulated)
    model = check_choice("model", "mlp" if simulated.model is None else simulated.model, MODELS)
    noise.check_level(level)
    entity, through = simulated.entity, simulated.through or []
    file = read_numbers(data, secret, through=through, entity=entity, encoding=encoding)
    own, target = file.numbers.halves(seed)
    released = sl.attacks.protect(target, noise, level, [file.secret], seed=seed)
    attackers = {"as published": sl.attacks.fit_published(own, [file.secret], model, seed=seed)}
    if model != "imputation":
        aware = sl.attacks.fit_aware(own, [file.secret], noise, [level], model, seed=seed)
        attackers["noise-aware"] = aware
    results = {
        f"{model}, {name}": sl.attack(released, attacker, secret=file.secret, truth=target)
        for name, attacker in attackers.items()
    }
    scales = sum(file.numbers.logarithmic)
    whole = "" if own.blocks is None else "; the records of one entity stay together"
    notes = (
        f"{len(file.numbers.names)} attributes scaled to 0..1 ({scales} on a logarithmic scale); the "
        f"attacker owns {len(own)} clean records, the other {len(target)} are released{whole}.",
        *file.notes,
    )
    return sl.attacks.AttackComparison(f"Reconstruction of {file.secret}", results, notes)


def _on_reports(data: str, secret: str, known: Known) -> sl.attacks.AttackComparison:
    """Infer the secret from reports by a belief learnt apart from the people attacked."""
    if known.truth is None:
        raise InputError(f"{data} holds reports; give --truth, the true records to compare with.")
    released = sl.read_reports(data)
    schema = released.protocol.schema
    table = _true_records(known.truth, secret, schema, known)
    belief_from: Any = "others" if known.belief_from is None else known.belief_from
    if belief_from not in ("others", "everyone"):
        belief_from = _true_records(belief_from, secret, table.schema, known)
    rows = _rows_of_phase(released, table, known.parameters)
    return sl.attacks.rehearse(released, table, secret, rows=rows, belief_from=belief_from)


def _true_records(path: str, secret: str, schema: sl.Schema, known: Known) -> sl.Table:
    """Read true records, coded as the schema says, which is that of the reports."""
    stated: dict[str, Any] = {**stated_kinds(known.kinds)}
    return sl.read(
        path, schema=schema, rest=known.schema or True, require=[secret], encoding=known.encoding,
        kinds={name: kind for name, kind in stated.items() if name not in schema},
    )  # fmt: skip


def _rows_of_phase(released: sl.RecordReports, table: sl.Table, parameters: Path | None) -> Any:
    """Return which people of the table reported in this phase; None where everyone did."""
    published = sl.protocols.SecondPhase.read(parameters) if parameters else None
    if table.rows == released.people:
        return None
    rows = sl.protocols.phase_rows(released, table.rows, published)
    if rows is None and released.protocol.name in ("corr-rr", "cond-rr"):
        raise InputError(
            f"{table.source.label} has {table.rows} records, the second phase {released.people} reports; "
            "give --parameters, which say whose they are, or the truth of these records alone."
        )
    return rows
