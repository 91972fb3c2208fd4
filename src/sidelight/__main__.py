"""`python -m sidelight` is the command `sidelight`: it takes no module from the working folder either."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the working folder, which `-m` puts there
    from sidelight.cli import main

    main()
