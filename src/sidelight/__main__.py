"""`python -m sidelight` is the command `sidelight`."""

from __future__ import annotations

from sidelight.cli import main

if __name__ == "__main__":
    main()
