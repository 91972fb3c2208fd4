"""The command `attack`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli.common import (
    Data,
    Encoding,
    Json,
    Kinds,
    ReportFile,
    SchemaFile,
    check_writable,
    first_given,
    progress,
    stated,
)
from sidelight.foundation.terminal import say, say_json

if TYPE_CHECKING:
    from sidelight.attacks import AttackComparison, Noise
    from sidelight.protocols import RecordReports
    from sidelight.sources import Table


Noises = Annotated[
    str | None,
    typer.Option(help="'laplace' [the default], 'gaussian', 'gaussian-classic', 'interval' or 'swap'."),
]
Budget = Annotated[float | None, typer.Option(help="The secret's budget [1].")]
Leniency = Annotated[float | None, typer.Option(help="The other attributes' budgets over the secret's [1].")]
Share = Annotated[float | None, typer.Option(help="Share of swapped values, for 'swap' [0.5].")]
Model = Annotated[
    str | None,
    typer.Option(help="'mlp' [the default], 'cnn', 'rnn', 'lstm', 'attention', 'boosted' or 'imputation'."),
]
Through = Annotated[
    list[str] | None, typer.Option(help="Another attribute; repeatable. All numeric ones by default.")
]
Entity = Annotated[str | None, typer.Option(help="The column that says whose record it is.")]
Truth = Annotated[
    str | None,
    typer.Option(help="The true records, where DATA is a file of reports; of one phase, or of all people."),
]
Published = Annotated[
    Path | None, typer.Option(help="The published parameters, where DATA is a second phase of all people.")
]
Seed = Annotated[int | None, typer.Option(help="Of the simulated noise and the training [0].")]


def attack(
    data: Data,
    secret: Annotated[str, typer.Option(help="The attribute that is attacked.")],
    noise: Noises = None,
    epsilon: Budget = None,
    leniency: Leniency = None,
    share: Share = None,
    model: Model = None,
    through: Through = None,
    entity: Entity = None,
    truth: Truth = None,
    parameters: Published = None,
    seed: Seed = None,
    schema: SchemaFile = None,
    kinds: Kinds = None,
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Attack a release: simulated on half of a table, or a file of reports against its true records.

    On a file of reports the attack is Bayes' rule: noise, budgets and models are what the file says.
    """
    from sidelight.attacks.released import is_reports_file
    from sidelight.foundation.errors import InputError

    check_writable(report, (".html", ".htm"))
    with progress(quiet=json):
        if is_reports_file(data):
            simulated = {
                "--noise": noise, "--epsilon": epsilon, "--leniency": leniency, "--share": share,
                "--model": model, "--through": through, "--entity": entity, "--seed": seed,
            }  # fmt: skip
            _refuse(simulated, f"{data} holds reports, made as the file says, and the attack is Bayes' rule")
            if truth is None:
                raise InputError(f"{data} holds reports; give --truth, the true records to compare with.")
            result = _on_reports(data, truth, secret, parameters, encoding, stated(schema, kinds))
        else:
            of_reports = {"--truth": truth, "--parameters": parameters, "--schema": schema, "--kind": kinds}
            _refuse(of_reports, f"{data} holds no reports, so its records are the truth")
            family, level = _noise(noise, epsilon, leniency, share, entity)
            chosen = "mlp" if model is None else model
            result = _on_numbers(
                data, secret, family, level, chosen, through or [], entity, seed or 0, encoding
            )
    _show(result, report, json)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    from sidelight.foundation.errors import InputError

    if name := first_given(options):
        raise InputError(f"{reason}; leave {name} out.")


def _noise(
    name: str | None, epsilon: float | None, leniency: float | None, share: float | None, entity: str | None
) -> tuple[Noise, float]:
    """Return the family of noise and its level."""
    from sidelight.attacks.owner import Noise
    from sidelight.foundation.errors import InputError

    family = Noise(
        "laplace" if name is None else name,  # type: ignore[arg-type]
        1.0 if leniency is None else leniency,
    )
    if family.has_budget:
        _refuse({"--share": share}, f"{family.family} noise has a budget and no share")
        return family, 1.0 if epsilon is None else epsilon
    _refuse({"--epsilon": epsilon, "--leniency": leniency}, "swaps have a share and no budget")
    if entity is None:
        raise InputError("swaps stay among the records of one entity; name its column with --entity.")
    return family, 0.5 if share is None else share


def _on_numbers(
    data: str,
    secret: str,
    noise: Noise,
    level: float,
    model: str,
    through: list[str],
    entity: str | None,
    seed: int,
    encoding: str,
) -> AttackComparison:
    """Give half of the records to the attacker, release the other half, and attack it."""
    from sidelight.attacks import AttackComparison, attack, fit_aware, fit_published, protect
    from sidelight.attacks.reading import read_numbers
    from sidelight.attacks.reconstruction import MODELS
    from sidelight.foundation.errors import check_choice

    check_choice("model", model, MODELS)
    noise.check_level(level)
    file = read_numbers(data, secret, through=through, entity=entity, encoding=encoding)
    own, target = file.numbers.halves(seed)
    released = protect(target, noise, level, [file.secret], seed=seed)
    attackers = {"as published": fit_published(own, [file.secret], model, seed=seed)}
    if model != "imputation":
        attackers["noise-aware"] = fit_aware(own, [file.secret], noise, [level], model, seed=seed)
    results = {
        f"{model}, {name}": attack(released, attacker, secret=file.secret, truth=target)
        for name, attacker in attackers.items()
    }
    scales = sum(file.numbers.logarithmic)
    whole = "" if own.blocks is None else "; the records of one entity stay together"
    notes = (
        f"{len(file.numbers.names)} attributes scaled to 0..1 ({scales} on a logarithmic scale); the "
        f"attacker owns {len(own)} clean records, the other {len(target)} are released{whole}.",
        *file.notes,
    )
    return AttackComparison(f"Reconstruction of {file.secret}", results, notes)


def _on_reports(
    data: str, truth: str, secret: str, parameters: Path | None, encoding: str, rules: dict[str, Any]
) -> AttackComparison:
    """Infer the secret from reports by the belief of the true records themselves."""
    import sidelight as sl
    from sidelight.attacks import AttackComparison, BayesAttacker, attack
    from sidelight.transport import read_reports

    released = read_reports(data)
    schema = released.protocol.schema
    others = rules["schema"] or True
    kinds = {name: kind for name, kind in rules["kinds"].items() if name not in schema}
    table = sl.read(truth, schema=schema, rest=others, require=[secret], kinds=kinds, encoding=encoding)
    belief = sl.Belief.from_data(table)
    attacker = BayesAttacker(belief if belief.kind == "joint" else sl.Belief.tree_of(belief))
    result = attack(released, attacker, secret=secret, truth=_of_phase(released, table, parameters))
    note = f"For an attacker who knows the distribution of {belief.source} ({attacker.belief.kind})."
    return AttackComparison(f"Inference of {secret} from reports", {"Bayes": result}, (note,))


def _of_phase(released: RecordReports, table: Table, parameters: Path | None) -> Any:
    """Return the true records of those who reported: of a phase, where the table holds all people."""
    import sidelight as sl
    from sidelight.protocols import phase_rows

    published = sl.protocols.SecondPhase.read(parameters) if parameters else None
    if table.rows == released.people:
        return table
    rows = phase_rows(released, table.rows, published)
    if rows is None and released.protocol.name in ("corr-rr", "cond-rr"):
        raise sl.InputError(
            f"{table.source.label} has {table.rows} records, the second phase {released.people} reports; "
            "give --parameters, which say whose they are, or the truth of these records alone."
        )
    return table if rows is None else table.codes()[rows]


def _show(result: AttackComparison, report: Path | None, json: bool) -> None:
    import sidelight as sl

    written = sl.write_report(result, report) if report else None
    if json:
        say_json(result.to_json())
        return
    from sidelight.report.attack_terminal import print_attack

    print_attack(result)
    if written:
        say(f"The report is in {written}.")
