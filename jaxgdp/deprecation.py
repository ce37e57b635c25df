"""Old names and calls: they work for one version, and warn with the call that replaces them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class")


def warn(old: str, new: str, stacklevel: int = 3) -> None:
    """A ``DeprecationWarning`` that names the new call.

    Args:
        old: what was written.
        new: what to write.
        stacklevel: of the line that is to be changed, counted from here.
    """
    warnings.warn(f"{old} is deprecated: write {new}", DeprecationWarning, stacklevel=stacklevel)


def renamed_arguments(**names: str) -> Callable[[_Function], _Function]:
    """A function whose arguments had other names: ``renamed_arguments(old="new")``.

    Raises:
        TypeError: (when called) an argument was given by both of its names.

    Example:
        >>> import warnings
        >>> @renamed_arguments(alpha="fpr")
        ... def beta(fpr):
        ...     return 1.0 - fpr
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     value = beta(alpha=0.25)
        >>> value, str(caught[0].message)
        (0.75, 'beta(alpha=…) is deprecated: write beta(fpr=…)')
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **given: Any) -> Any:
            for old, new in names.items():
                if old in given:
                    called = function.__name__
                    if new in given:
                        raise TypeError(f"{called}() got {new!r} by its old name {old!r}, too")
                    warn(f"{called}({old}=…)", f"{called}({new}=…)")
                    given[new] = given.pop(old)
            return function(*args, **given)

        return wrapper  # type: ignore[return-value]

    return decorate


def renamed_fields(**names: str) -> Callable[[type[_Class]], type[_Class]]:
    """A dataclass whose fields had other names: ``renamed_fields(old="new")`` above ``@dataclass``.

    Example:
        >>> import dataclasses, warnings
        >>> @renamed_fields(d="approximation")
        ... @dataclasses.dataclass
        ... class Target:
        ...     approximation: float
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     target = Target(d=1e-6)
        ...     same = target.d
        >>> target.approximation == same
        True
        >>> for warning in caught:
        ...     print(warning.message)
        Target(d=…) is deprecated: write Target(approximation=…)
        Target.d is deprecated: write Target.approximation
    """

    def decorate(cls: type[_Class]) -> type[_Class]:
        init = cls.__init__
        made = functools.wraps(init)(lambda self, *args, **given: init(self, *args, **given))
        made.__name__ = cls.__name__
        cls.__init__ = renamed_arguments(**names)(made)  # type: ignore[method-assign]
        for old, new in names.items():
            setattr(cls, old, _read_by_new_name(cls.__name__, old, new))
        return cls

    return decorate


def _read_by_new_name(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(read, doc=f"Old name of ``{new}``.")


def keywords_after(number: int, *names: str) -> Callable[[_Function], _Function]:
    """A function of keywords, but for its first arguments, that used to take more by position.

    Args:
        number: arguments that are taken by position.
        names: of those that used to follow, in order.

    Example:
        >>> import warnings
        >>> @keywords_after(1, "rtol")
        ... def measured(mechanism, *, rtol=1e-3):
        ...     return rtol
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     value = measured("a mechanism", 0.5)
        >>> value, str(caught[0].message)
        (0.5, 'measured(…, 0.5) by position is deprecated: write measured(…, rtol=0.5)')
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **given: Any) -> Any:
            more = args[number:]
            if more and len(more) <= len(names):
                called = function.__name__
                for name, value in zip(names, more, strict=False):
                    if name in given:
                        raise TypeError(f"{called}() got multiple values for argument {name!r}")
                    shown = _short(value)
                    warn(f"{called}(…, {shown}) by position", f"{called}(…, {name}={shown})")
                    given[name] = value
                args = args[:number]
            return function(*args, **given)

        return wrapper  # type: ignore[return-value]

    return decorate


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 20 and "\n" not in text else "…"


def renamed_names(module: str, **names: Any) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module in which something had another name.

    Args:
        module: its ``__name__``.
        names: what is meant, by the old name.

    Example:
        >>> import warnings
        >>> find = renamed_names("jaxgdp.bridge", Verdict=Warning)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     found = find("Verdict")
        >>> found is Warning, str(caught[0].message)
        (True, 'jaxgdp.bridge.Verdict is deprecated: write jaxgdp.bridge.Warning')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name}", f"{module}.{names[name].__name__}")
        return names[name]

    return find
