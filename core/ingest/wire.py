"""What a child process answers, as bytes that are safe to read whoever wrote them.

Plain values and the dataclasses of ``core.ingest`` and ``core.types`` only; nothing in the bytes can name
code. Long texts and bytes stand behind the description, unescaped. Lists arrive as tuples.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_INLINE = 256
"""Characters. Longer texts stand behind the description."""
_MODULES = ("core.ingest.", "core.types")
"""Only dataclasses of modules whose names begin so are made anew."""


def encode(value: object) -> tuple[bytes, list[bytes]]:
    """The description, and what stands behind it in this order. Raises TypeError for other values."""
    blobs: list[bytes] = []
    described = _described(value, blobs)
    return json.dumps([described, [len(blob) for blob in blobs]]).encode("ascii"), blobs


def sizes(description: bytes) -> list[int]:
    """How many bytes each part behind the description has. Raises ValueError for a damaged one."""
    found = _loaded(description)[1]
    if not isinstance(found, list) or not all(type(size) is int and size >= 0 for size in found):
        raise ValueError("sizes")
    return found


def decode(description: bytes, blobs: Iterable[bytes | memoryview]) -> Any:
    """The value. Raises ValueError for anything that ``encode`` would not have written."""
    parts = iter(blobs)
    try:
        value = _value(_loaded(description)[0], parts)
    except (TypeError, LookupError, AttributeError, ImportError, StopIteration, RuntimeError) as error:
        raise ValueError(repr(error)) from error
    if next(parts, None) is not None:
        raise ValueError("more parts than are described")
    return value


def _loaded(description: bytes) -> list[Any]:
    try:
        loaded = json.loads(description)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(loaded, list) or len(loaded) != 2:
        raise ValueError("description")
    return loaded


def _described(value: object, blobs: list[bytes]) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        if len(value) <= _INLINE:
            return value
        blobs.append(value.encode("utf-8", "surrogatepass"))
        return {"text": len(blobs)}
    if isinstance(value, bytes):
        blobs.append(value)
        return {"bytes": len(blobs)}
    if isinstance(value, (list, tuple)):
        return [_described(item, blobs) for item in value]
    if isinstance(value, dict):
        return {"dict": [[str(key), _described(item, blobs)] for key, item in value.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        parts = [_described(getattr(value, field.name), blobs) for field in fields(value)]
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": parts}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _value(described: Any, blobs: Iterator[bytes | memoryview]) -> Any:
    """Each part is taken once, in order: a short description cannot grow without bounds."""
    if isinstance(described, list):
        return tuple(_value(item, blobs) for item in described)
    if not isinstance(described, dict):
        return described
    if "text" in described:
        return str(next(blobs), "utf-8", "surrogatepass")
    if "bytes" in described:
        return bytes(next(blobs))
    if "dict" in described:
        return {str(key): _value(item, blobs) for key, item in described["dict"]}
    kind = _class(described["class"])
    hints = _hints(kind)
    values = [_value(item, blobs) for item in described["fields"]]
    named = dict(zip((field.name for field in fields(kind)), values, strict=True))
    for name, value in named.items():
        if not _fits(value, hints[name]):
            raise TypeError(f"{kind.__name__}.{name} is {type(value).__name__}")
    return kind(**named)


def _class(name: str) -> Any:
    """A dataclass of ours: a child can make this process load a module of these, and no other."""
    module, _, qualified = name.partition(":")
    kind = getattr(import_module(module), qualified, None) if module.startswith(_MODULES) else None
    if not isinstance(kind, type) or not is_dataclass(kind) or kind.__module__ != module:
        raise TypeError(f"{name} is no class that is sent")
    return kind


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: object, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[1:] == (Ellipsis,):
            return all(_fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if isinstance(origin, type):
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, (int, float))
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) if isinstance(hint, type) else True
