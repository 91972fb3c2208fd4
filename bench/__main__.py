"""Run every benchmark."""

from bench import commands, leakage

commands.main()
leakage.main()
