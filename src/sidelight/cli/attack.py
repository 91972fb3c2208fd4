"""The command `attack`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelight.cli.common import Data, Encoding, Json, ReportFile, check_writable, progress

if TYPE_CHECKING:
    from sidelight.attacks import AttackComparison, Noise


def attack(
    data: Data,
    secret: Annotated[str, typer.Option(help="The attribute that is attacked.")],
    noise: Annotated[
        str, typer.Option(help="'laplace', 'gaussian', 'gaussian-classic', 'interval' or 'swap'.")
    ] = "laplace",
    epsilon: Annotated[float, typer.Option(help="The secret's budget.")] = 1.0,
    leniency: Annotated[float, typer.Option(help="The other attributes' budgets over the secret's.")] = 1.0,
    share: Annotated[float, typer.Option(help="Share of swapped values, for 'swap'.")] = 0.5,
    model: Annotated[
        str,
        typer.Option(help="'mlp', 'cnn', 'rnn', 'lstm', 'attention', 'boosted' or 'imputation'."),
    ] = "mlp",
    through: Annotated[
        list[str] | None, typer.Option(help="Another attribute; repeatable. All numeric ones by default.")
    ] = None,
    entity: Annotated[str | None, typer.Option(help="The column that says whose record it is.")] = None,
    truth: Annotated[
        str | None, typer.Option(help="The true records, where DATA is a file of reports.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulated noise and the training.")] = 0,
    encoding: Encoding = "utf-8",
    report: ReportFile = None,
    json: Json = False,
) -> None:
    """Attack a release: simulated on half of a table, or a file of reports against its true records.

    On a file of reports the attack is Bayes' rule: noise, budgets and models are what the file says.
    """
    from sidelight.attacks.owner import Noise
    from sidelight.attacks.released import is_reports_file
    from sidelight.foundation.errors import InputError

    check_writable(report, (".html", ".htm"))
    with progress(quiet=json):
        if is_reports_file(data):
            if truth is None:
                raise InputError(f"{data} holds reports; give --truth, the true records to compare with.")
            result = _on_reports(data, truth, secret, encoding)
        else:
            if truth is not None:
                raise InputError(f"{data} holds no reports, so its records are the truth; leave --truth out.")
            family = Noise(noise, leniency)  # type: ignore[arg-type]
            if not family.has_budget and entity is None:
                raise InputError("swaps stay among the records of one entity; name its column with --entity.")
            level = epsilon if family.has_budget else share
            result = _on_numbers(data, secret, family, level, model, through or [], entity, seed, encoding)
    _show(result, report, json)


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


def _on_reports(data: str, truth: str, secret: str, encoding: str) -> AttackComparison:
    """Infer the secret from reports by the belief of the true records themselves."""
    import sidelight as sl
    from sidelight.attacks import AttackComparison, BayesAttacker, attack
    from sidelight.collection import read_reports

    released = read_reports(data)
    schema = released.protocol.schema
    table = sl.read(truth, schema=schema, rest=True, require=[secret], encoding=encoding)
    belief = sl.Belief.from_data(table)
    attacker = BayesAttacker(belief if belief.kind == "joint" else sl.Belief.tree_of(belief))
    result = attack(released, attacker, secret=secret, truth=table)
    note = f"For an attacker who knows the distribution of {table.source.label} ({attacker.belief.kind})."
    return AttackComparison(f"Inference of {secret} from reports", {"Bayes": result}, (note,))


def _show(result: AttackComparison, report: Path | None, json: bool) -> None:
    import sidelight as sl

    written = sl.write_report(result, report) if report else None
    if json:
        typer.echo(result.to_json())
        return
    from sidelight.report.attack_terminal import print_attack

    print_attack(result)
    if written:
        typer.echo(f"The report is in {written}.")
