"""Keys of the configuration from the environment: `FORECOURT_SERVER__PORT=9000` is `server.port`."""

import tomllib
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from forecourt.server.config_problem import ConfigError, ConfigProblem
from forecourt.server.toml_place import Key

__all__ = ["apply_environment"]

_PREFIX: Final = "FORECOURT_"
_STEPS: Final = 8
"""How deep a variable may reach; no configuration is deeper."""


def apply_environment(
    table: dict[str, Any], kind: type[msgspec.Struct], environment: Mapping[str, str]
) -> dict[Key, str]:
    """Set in `table`, the configuration as read, what the environment says; return each key's variable.

    Two underscores lead into a table, a number into a list: `FORECOURT_DEALERS__0__ID`. Where text is wanted the value
    is taken as it is, elsewhere as TOML writes it (`90`, `true`, `["a", "b"]`). A variable whose first name is no key
    of the file belongs to somebody else. Raises ConfigError for one that leads nowhere from there.
    """
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    said: dict[Key, str] = {}
    problems: list[ConfigProblem] = []
    for variable in sorted(environment):
        if not variable.startswith(_PREFIX):
            continue
        steps = variable.removeprefix(_PREFIX).lower().split("__")
        if steps[0] not in names:
            continue
        try:
            key = _set(table, kind, steps, environment[variable])
        except _NoKeyError as error:
            problems.append(ConfigProblem((), error.text, variable=variable))
        else:
            said[key] = variable
    if problems:
        raise ConfigError(problems)
    return said


class _NoKeyError(Exception):
    """The variable names nothing that can be set; `text` says why."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


def _set(table: dict[str, Any], kind: Any, steps: list[str], text: str) -> Key:
    place: Any = table
    key: Key = ()
    if len(steps) > _STEPS or "" in steps:
        raise _NoKeyError("is the name of no key")
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(place, list):
            if not step.isdecimal() or int(step) > len(place):
                raise _NoKeyError(f"there is no entry {step} in that list, which has {len(place)}")
            index = int(step)
            if index == len(place):
                place.append({})
            name: str | int = index
        elif isinstance(place, dict):
            name = step
        else:
            raise _NoKeyError("is the name of no key: what stands before the last part is no table")
        kind = _kind_of(kind, step)
        key = (*key, name)
        if last:
            place[name] = _value(text, kind)
        elif isinstance(name, int):
            place = place[name]
        else:
            place = place.setdefault(name, [] if _is_list(kind) else {})
    return key


def _kind_of(kind: Any, step: str) -> Any:
    """Return what is wanted one step further in."""
    for arm in _arms(kind):
        if isinstance(arm, type) and issubclass(arm, msgspec.Struct):
            fields = {field.encode_name: field.type for field in msgspec.structs.fields(arm)}
            if step not in fields:
                raise _NoKeyError("there is no such key")
            return fields[step]
        if get_origin(arm) is tuple:
            return get_args(arm)[0]
        if get_origin(arm) is dict:
            return get_args(arm)[1]
    raise _NoKeyError("there is no such key")


def _arms(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        for arm in get_args(kind):
            yield from _arms(arm)
    else:
        yield kind


def _is_list(kind: Any) -> bool:
    return any(get_origin(arm) is tuple for arm in _arms(kind))


def _value(text: str, kind: Any) -> Any:
    if any(arm is str for arm in _arms(kind)):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text
