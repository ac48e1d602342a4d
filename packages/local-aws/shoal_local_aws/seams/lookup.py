"""Looks up names inside ministack; a missing name is reported when the emulator starts.

`MinistackModule.take` reads what does not change: tables, which are changed in place, and functions that are not
replaced. A `Seam` is a name that ministack looks up at each use, and that can be replaced. A module that imported a
function by its name has its own reference to it, so a seam must list every module whose reference is replaced.
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
"""Records by their ids; most tables hold those of the present request's account and region."""
_T = TypeVar("_T")


def missing(name: str) -> EmulatorError:
    return EmulatorError(
        f"ministack {version('ministack')} has no {name}, which the embedded AWS needs: it was written for ministack "
        f"{WRITTEN_FOR}. Install that version (`make setup`), or adapt shoal_local_aws/seams to the other one."
    )


class MinistackModule:
    """A module of ministack.

    Raises (as its methods do):
        EmulatorError: ministack has no such module, or the module no such name.
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
        """Replace the object of a name, which must exist."""
        self.take(name)
        setattr(self._module, name, new)


class Seam(Generic[_T]):
    """A name that ministack looks up at each use.

    Args:
        name: as ministack has it.
        modules: those in which the name is replaced; the one that defines it comes first.
    """

    def __init__(self, name: str, *modules: MinistackModule) -> None:
        self._name = name
        self._modules = modules
        for module in modules:
            module.take(name)

    @property
    def now(self) -> _T:
        """The current object of the name."""
        found: _T = self._modules[0].take(self._name)
        return found

    def put(self, new: _T) -> None:
        for module in self._modules:
            module.replace(self._name, new)

    def wrap(self, around: Callable[[_T], _T]) -> None:
        """Replace the object by a wrapper around it."""
        self.put(around(self.now))


class Operations:
    """ministack's table of a service's operations, by their names in the API."""

    def __init__(self, module: MinistackModule, name: str) -> None:
        self._name = f"{module.name}.{name}"
        self._table: dict[str, Operation] = module.take(name)

    def now(self, name: str) -> Operation:
        """The current handler of an operation. Raises EmulatorError where ministack does not have it."""
        try:
            return self._table[name]
        except KeyError:
            raise missing(f"{self._name}[{name!r}]") from None

    def put(self, **operations: Operation) -> None:
        """Replace or add handlers of operations."""
        self._table.update(operations)

    def wrap(self, name: str, around: Callable[[Operation], Operation]) -> None:
        """Replace the handler of an operation by a wrapper around it."""
        self._table[name] = around(self.now(name))
