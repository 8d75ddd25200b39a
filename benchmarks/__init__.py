"""Benchmarks: each module is one command that prints its figures; `python -m benchmarks.a2a_search`."""
