"""A topology whose one node does all of the work: `preprocessing: {on: node}` in place of a cluster's fields."""

from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, PrivateAttr, model_validator

from infra.document import FieldError
from infra.parts import NodeGroup, TopologyPart


class OnNode(TopologyPart):
    """A topology that may be one; its `preprocessing` is then None."""

    _on_node: bool = PrivateAttr(default=False)

    @property
    def preprocesses_on_node(self) -> bool:
        """Whether the node that trains makes the datasets, too."""
        return self._on_node

    @model_validator(mode="wrap")
    @classmethod
    def _or_a_cluster(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        given = data.get("preprocessing") if isinstance(data, dict) else None
        if not isinstance(given, dict) or "on" not in given:
            return handler(data)
        if given != {"on": "node"}:
            raise FieldError(
                "write {on: node}, where one node does all of the work, or a cluster's fields.", "preprocessing", "on"
            )
        made = handler({**data, "preprocessing": None})
        groups: tuple[NodeGroup, ...] = made.training  # type: ignore[attr-defined]
        if [(group.role, group.count) for group in groups] != [("train", 1)]:
            raise FieldError("one node does all of the work; have `training` name one.", "preprocessing", "on")
        made._on_node = True
        return made
