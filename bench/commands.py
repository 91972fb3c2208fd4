"""Wall time and peak memory of whole commands, start-up included."""

from __future__ import annotations

from bench.timing import DATA, command


def main() -> None:
    """Print what the commands of the README and the first audits cost."""
    print("\nwhole commands (second run, compiled kernels cached)")
    print(f"{'command':<52}{'seconds':>11}{'peak MB':>11}")
    commands = [("--help",), ("demo",)]
    for name in ("adult", "celeba_attr"):
        path = DATA / f"{name}.parquet"
        if path.exists():
            commands.append(("audit", str(path)))
        else:
            print(f"{name}: no such table at {DATA}; set SIDELIGHT_DATA")
    for arguments in commands:
        seconds, peak = command(*arguments)
        shown = " ".join([arguments[0], *(argument.rpartition("/")[2] for argument in arguments[1:])])
        print(f"sidelight {shown:<42}{seconds:>11.2f}{peak:>11.0f}")


if __name__ == "__main__":
    main()
