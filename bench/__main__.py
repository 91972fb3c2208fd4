"""Run every benchmark."""

from bench import attacks, commands, leakage

commands.main()
leakage.main()
attacks.main()
