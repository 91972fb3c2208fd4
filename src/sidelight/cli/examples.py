"""The examples that every command's help ends with; those of a command build on those before it."""

from __future__ import annotations

EXAMPLES = {
    "": ("sidelight demo", "sidelight example survey -o people.csv", "sidelight audit people.csv"),
    "demo": ("sidelight demo", "sidelight demo --report demo.html"),
    "example": (
        "sidelight example survey -o people.csv",
        "sidelight example titanic -o titanic.parquet",
        "sidelight example survey --rows 1000 --seed 7 -o small.csv",
    ),
    "init": ("sidelight init people.csv", "sidelight init people.csv --force --report report"),
    "run": ("sidelight run", "sidelight run sidelight.toml --json"),
    "schema": ("sidelight schema people.csv", "sidelight schema people.csv -o columns.toml"),
    "audit": (
        "sidelight audit people.csv --secret diabetes --report audit.html",
        "sidelight audit people.csv --epsilon 0.5 --limit 1.5 --save-plan even.toml",
        "sidelight audit people.csv --secret diabetes=1 --remedies",
    ),
    "calibrate": (
        "sidelight calibrate people.csv --secret diabetes=1 -o plan.toml",
        "sidelight calibrate people.csv --limit 1.5 --weight income=2 --uniform",
    ),
    "knowledge": (
        "sidelight knowledge people.csv --attributes age,income,smokes --target income --known age",
        "sidelight knowledge people.csv --attributes age,smokes --query count --count smokes=yes --limit 1",
    ),
    "advise": (
        "sidelight advise people.csv --epsilon 1",
        "sidelight advise --attributes 3 --values 4 --people 5000 --save-protocol protocol.toml",
    ),
    "collect": (
        "sidelight collect people.csv --plan plan.toml -o reports.parquet",
        "sidelight collect people.csv --plan plan.toml --seed 1 --no-shuffle -o simulated.parquet",
        "sidelight collect people.csv --plan plan.toml --batches 4 -o inbox",
    ),
    "estimate": (
        "sidelight estimate reports.parquet --report estimates.html",
        "sidelight estimate reports.parquet --truth people.csv -o estimates.csv",
        "sidelight estimate --follow inbox --once --json",
    ),
    "attack": (
        "sidelight attack simulated.parquet --truth people.csv --secret income",
        "sidelight attack simulated.parquet --truth people.csv --secret diabetes --report attack.html",
    ),
    "learn": (
        "sidelight learn people.csv --label diabetes --epsilon 1 --model bayes -o model.json",
        "sidelight learn people.csv --label diabetes --model tree --draw tree.svg --seed 1",
    ),
    "serve": ("sidelight serve", "sidelight serve inbox --port 9000"),
    "studio": ("sidelight studio people.csv", "sidelight studio people.csv --no-browser --port 9000"),
    "service": (
        "sidelight service key ada",
        "sidelight service backup sunday.backup --passphrase secret.txt",
    ),
    "service task": (
        'sidelight service task protocol.toml --purpose "To plan meals" --contact a@b.org -o task.json',
        'sidelight service task plan.toml --purpose "To plan" --contact a@b.org --rounds 5 -o panel.json',
    ),
    "service key": ("sidelight service key ada", "sidelight service key ada --folder inbox"),
    "service backup": (
        "sidelight service backup sunday.backup",
        "sidelight service backup sunday.backup --passphrase secret.txt",
    ),
    "service restore": (
        "sidelight service restore sunday.backup --folder elsewhere",
        "sidelight service restore sunday.backup --passphrase secret.txt --folder elsewhere",
    ),
    "plan": (
        "sidelight plan diff even.toml plan.toml --data people.csv",
        "sidelight audit people.csv even.toml plan.toml --report plans.html",
    ),
    "plan show": ("sidelight plan show plan.toml", "sidelight plan show plan.toml --markdown"),
    "plan diff": (
        "sidelight plan diff even.toml plan.toml",
        "sidelight plan diff even.toml plan.toml --data people.csv --secret diabetes --markdown",
    ),
    "plan check": (
        "sidelight plan check plan.toml",
        "sidelight plan check plan.toml --data people.csv --json",
    ),
    "ledger": ("sidelight ledger show ann.ledger", "sidelight ledger show ann.ledger --json"),
    "ledger show": ("sidelight ledger show ann.ledger", "sidelight ledger show ann.ledger --json"),
    "doctor": ("sidelight doctor", "sidelight doctor --json"),
    "study": ("sidelight study list", "sidelight study run all --quick"),
    "study list": ("sidelight study list", "sidelight study list --json"),
    "study show": ("sidelight study show cpl-table1", "sidelight study show cpl-table1 --json"),
    "study run": ("sidelight study run cpl-table1 --quick", "sidelight study run all --quick --out results"),
    "study clean": ("sidelight study clean", "sidelight study clean --all --days 30"),
    "bench": ("sidelight bench analysers people.csv", "sidelight bench mechanisms people.csv"),
    "bench analysers": (
        "sidelight bench analysers people.csv --epsilon 1 --figure analysers.svg",
        "sidelight bench analysers people.csv --reference grr --json",
    ),
    "bench mechanisms": (
        "sidelight bench mechanisms people.csv --epsilon 1 --figure mechanisms.svg",
        "sidelight bench mechanisms people.csv --mechanism hadamard --json",
    ),
}
"""By the words after `sidelight`; `sidelight example survey -o people.csv` makes the table they name."""


def epilog(name: str) -> str:
    r"""Return the end of a command's help; \b keeps its lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[name])
