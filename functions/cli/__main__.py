"""Runs the command line: `python -m functions.cli`."""

from functions.cli.main import main

main(prog_name="noema")
