"""Run every benchmark."""

from bench import collection, commands, leakage

commands.main()
leakage.main()
collection.main()
