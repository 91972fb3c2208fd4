"""Run every benchmark."""

from bench import commands, knowledge, leakage

commands.main()
leakage.main()
knowledge.main()
