"""``python -m runner.cli`` is ``proctor``."""

from runner.cli import main

main()
