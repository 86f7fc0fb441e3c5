"""The version of the code of a class, which results folders keep."""

from __future__ import annotations

import builtins
import hashlib
import inspect
import sys
from types import CodeType, FunctionType
from typing import Any

__all__ = ["version"]


def version(cls: type) -> str:
    """A digest of the source of `cls`, of its base classes, and of what these use of the same modules: functions,
    classes, constants. Code that is imported from other modules is not included."""
    parts: dict[str, str] = {}
    for base in cls.__mro__:
        if base.__module__ not in ("builtins", "abc", "typing") and not base.__module__.startswith("ropewalk."):
            _collect(base, base.__module__, parts)
    text = "\n".join(f"{name}\n{source}" for name, source in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _collect(item: Any, module: str, parts: dict[str, str]) -> None:
    """Add the source of a class or a function, and of everything that it names."""
    name = f"{module}.{item.__qualname__}"
    if name in parts:
        return
    functions = [item] if isinstance(item, FunctionType) else _functions(item)
    parts[name] = _source(item, functions)
    namespace = vars(sys.modules[module]) if module in sys.modules else {}
    for function in functions:
        for used in sorted(_names(function.__code__)):
            value = function.__globals__.get(used, namespace.get(used, builtins))
            if isinstance(value, (type, FunctionType)) and value.__module__ == module:
                _collect(value, module, parts)
            elif isinstance(value, (bool, int, float, str, bytes, tuple, frozenset)):
                parts[f"{module}.{used}"] = repr(value)


def _source(item: Any, functions: list[FunctionType]) -> str:
    """The source, or the compiled code if there is no source (`exec`)."""
    try:
        return inspect.getsource(item)
    except (OSError, TypeError):
        return "\n".join(f"{function.__qualname__} {_compiled(function.__code__)}" for function in functions)


def _compiled(code: CodeType) -> str:
    constants = [_compiled(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names}"


def _functions(cls: type) -> list[FunctionType]:
    members = [getattr(member, "__func__", getattr(member, "fget", member)) for member in vars(cls).values()]
    return [member for member in members if isinstance(member, FunctionType)]


def _names(code: CodeType) -> set[str]:
    nested = [_names(value) for value in code.co_consts if isinstance(value, CodeType)]
    return set(code.co_names).union(*nested)
