"""Run every benchmark."""

from bench import calibration, commands, leakage

commands.main()
leakage.main()
calibration.main()
