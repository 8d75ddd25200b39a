"""Answers about short texts that come again and again, remembered within a bound on number and length."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

__all__ = ["remembered"]

_LONGEST: Final = 256

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def remembered(most: int) -> Callable[[Callable[_Asked, _Answer]], Callable[_Asked, _Answer]]:
    """Remember the latest `most` answers of a function, but none about texts of more than 256 characters.

    `lru_cache` alone bounds how many cells are kept and not how long they are: a feed of long ones would fill the
    memory.
    """

    def decorate(function: Callable[_Asked, _Answer]) -> Callable[_Asked, _Answer]:
        cached = lru_cache(maxsize=most)(function)

        @wraps(function)
        def ask(*arguments: _Asked.args, **named: _Asked.kwargs) -> _Answer:
            for each in arguments:
                if isinstance(each, str) and len(each) > _LONGEST:
                    return function(*arguments, **named)
            return cached(*arguments, **named)  # type: ignore[arg-type]

        return ask

    return decorate
