"""Looks up names inside ministack. If a name is missing, the emulator does not start.

`MinistackModule.take` returns an object that the emulator uses but does not replace: a table, or a function. A
`PatchPoint` is a name with an object that the emulator replaces. If a module of ministack imports a function by name,
it has its own reference to the function. So a patch point must list every module that has such a reference.
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
"""Records by id. Most tables show only the records in the account and region of the current request."""
_T = TypeVar("_T")


def missing(name: str) -> EmulatorError:
    return EmulatorError(
        f"ministack {version('ministack')} has no {name}, which the embedded AWS needs; it was written for ministack "
        f"{WRITTEN_FOR}. Install that version (`make setup`), or adapt shoal_local_aws/seams to this version."
    )


class MinistackModule:
    """A module of ministack. All methods raise EmulatorError if the module or the name does not exist in ministack."""

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
        """Replace the object that an existing name refers to."""
        self.take(name)
        setattr(self._module, name, new)


class PatchPoint(Generic[_T]):
    """A name in ministack with an object that can be replaced, because ministack looks up the name at each use. Of the
    modules in which to replace the object, the one that defines the name comes first."""

    def __init__(self, name: str, *modules: MinistackModule) -> None:
        self._name = name
        self._modules = modules
        for module in modules:
            module.take(name)

    @property
    def now(self) -> _T:
        """Object that the name currently refers to."""
        found: _T = self._modules[0].take(self._name)
        return found

    def put(self, new: _T) -> None:
        for module in self._modules:
            module.replace(self._name, new)

    def wrap(self, around: Callable[[_T], _T]) -> None:
        """Replace the current object by `around(object)`."""
        self.put(around(self.now))


class Operations:
    """ministack's handlers for the operations of a service, by API name."""

    def __init__(self, module: MinistackModule, name: str) -> None:
        self._name = f"{module.name}.{name}"
        self._table: dict[str, Operation] = module.take(name)

    def now(self, name: str) -> Operation:
        """Return the current handler of an operation. Raises EmulatorError if ministack does not have the operation."""
        try:
            return self._table[name]
        except KeyError:
            raise missing(f"{self._name}[{name!r}]") from None

    def put(self, **operations: Operation) -> None:
        """Replace or add handlers of operations."""
        self._table.update(operations)

    def wrap(self, name: str, around: Callable[[Operation], Operation]) -> None:
        """Replace the current handler of an operation by `around(handler)`."""
        self._table[name] = around(self.now(name))
