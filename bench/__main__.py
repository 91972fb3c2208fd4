"""Run every benchmark."""

from bench import commands, leakage, mechanisms

commands.main()
leakage.main()
mechanisms.main()
