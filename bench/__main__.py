"""Run every benchmark."""

from bench import commands, labels, leakage

commands.main()
leakage.main()
labels.main()
