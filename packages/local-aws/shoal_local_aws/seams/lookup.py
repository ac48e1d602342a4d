"""Looks up names inside ministack. A missing name stops the emulator at its start.

`MinistackModule.take` returns objects that are not replaced: tables, which change in place, and functions. A
`PatchPoint` is a replaceable name that ministack looks up at each use. A module that imports a function by name has its
own reference to it. So a patch point must list every module with such a reference.
"""

import importlib
from collections.abc import Callable, MutableMapping
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from shoal_local_aws.emulator_error import EmulatorError

WRITTEN_FOR = "1.5.33"

Record = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]
Operation = Callable[[Record], Any]
Table = MutableMapping[str, Record]
"""Records by id. Most tables show only the records of the current request's account and region."""
_T = TypeVar("_T")


def missing(name: str) -> EmulatorError:
    return EmulatorError(
        f"ministack {version('ministack')} has no {name}, which the embedded AWS needs; it was written for ministack "
        f"{WRITTEN_FOR}. Install that version (`make setup`), or adapt shoal_local_aws/seams to this version."
    )


class MinistackModule:
    """A module of ministack.

    Raises (also its methods):
        EmulatorError: The module or the name does not exist in ministack.
    """

    def __init__(self, name: str) -> None:
        self.name = f"ministack.{name}"
        try:
            self._module = importlib.import_module(self.name)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("ministack"):
                raise
            raise missing(str(error.name)) from error

    def take(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise missing(f"{self.name}.{name}") from None

    def replace(self, name: str, new: Any) -> None:
        """Replace the object of an existing name."""
        self.take(name)
        setattr(self._module, name, new)


class PatchPoint(Generic[_T]):
    """A replaceable name that ministack looks up at each use.

    Args:
        name: Name in ministack.
        modules: Modules in which to replace the name. The module that defines it comes first.
    """

    def __init__(self, name: str, *modules: MinistackModule) -> None:
        self._name = name
        self._modules = modules
        for module in modules:
            module.take(name)

    @property
    def now(self) -> _T:
        """Current object of the name."""
        found: _T = self._modules[0].take(self._name)
        return found

    def put(self, new: _T) -> None:
        for module in self._modules:
            module.replace(self._name, new)

    def wrap(self, around: Callable[[_T], _T]) -> None:
        """Replace the object by `around` of it."""
        self.put(around(self.now))


class Operations:
    """ministack's handlers of a service's operations, by API name."""

    def __init__(self, module: MinistackModule, name: str) -> None:
        self._name = f"{module.name}.{name}"
        self._table: dict[str, Operation] = module.take(name)

    def now(self, name: str) -> Operation:
        """Return the current handler of an operation. Raises EmulatorError if ministack lacks it."""
        try:
            return self._table[name]
        except KeyError:
            raise missing(f"{self._name}[{name!r}]") from None

    def put(self, **operations: Operation) -> None:
        """Replace or add handlers of operations."""
        self._table.update(operations)

    def wrap(self, name: str, around: Callable[[Operation], Operation]) -> None:
        """Replace the handler of an operation by `around` of it."""
        self._table[name] = around(self.now(name))
