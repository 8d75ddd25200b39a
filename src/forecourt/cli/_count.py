"""Numbers of things, as people write them: 1 lead, 2 leads, 1,000 leads."""

__all__ = ["counted"]


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with what it counts, by its word for one and for several (default: with an s)."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
