"""`python -m forecourt.cli`: the same as `forecourt`, where no script is installed."""

from forecourt.cli import main

main(prog_name="forecourt")
