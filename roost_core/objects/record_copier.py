"""Copy a frozen record with some fields changed, several times faster than `dataclasses.replace`."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _T = TypeVar("_T", bound=DataclassInstance)
else:
    _T = TypeVar("_T")


class Copier(Generic[_T]):
    """Copies records of one dataclass with slots and without `__post_init__`."""

    __slots__ = ("_class", "_get", "_setters", "_setters_by_name")

    def __init__(self, of: type[_T]) -> None:
        """of: the class. Raises KeyError when it has no slots."""
        names = [each.name for each in fields(of)]
        self._class = of
        self._get = attrgetter(*names)
        # The slots' setters: `replace` calls `__init__`, in which `object.__setattr__` looks each of them up.
        self._setters_by_name = {name: of.__dict__[name].__set__ for name in names}
        self._setters = tuple(self._setters_by_name.values())

    def __call__(self, one: _T, **changes: Any) -> _T:  # noqa: ANN401 - of any field
        """Return the copy. Raises KeyError for an unknown field."""
        new = object.__new__(self._class)
        for put, value in zip(self._setters, self._get(one), strict=True):
            put(new, value)
        for name, value in changes.items():
            self._setters_by_name[name](new, value)
        return new
