"""The CloudFormation types of Systems Manager and Budgets that ministack lacks."""

import json
from collections.abc import Mapping

from embedded.cloudformation.resource_type import TAGS, Created, ResourceType, call_service
from embedded.seams import requests
from embedded.seams.cloudformation import generated_name
from embedded.service import Record, client


def _create_document(logical: str, properties: Record, stack: str) -> Created:
    name = properties.get("Name") or generated_name(stack, logical)
    values = {key: value for key, value in properties.items() if key != "UpdateMethod"}
    call_service("ssm", "create_document", {**values, "Name": name, "Content": _document_text(properties)})
    return name, {}


def _document_text(properties: Record) -> str:
    content = properties["Content"]
    return content if isinstance(content, str) else json.dumps(content)


def _change_document(identifier: str, old: Record, new: Record) -> None:
    if old["Content"] != new["Content"]:
        client("ssm").update_document(Name=identifier, Content=_document_text(new), DocumentVersion="$LATEST")


def _create_budget(logical: str, properties: Record, stack: str) -> Created:
    budget = {"BudgetName": generated_name(stack, logical), **properties["Budget"]}
    notifications = properties.get("NotificationsWithSubscribers")
    call_service(
        "budgets",
        "create_budget",
        {"AccountId": requests.account(), "Budget": budget}
        | ({"NotificationsWithSubscribers": notifications} if notifications else {}),
    )
    return budget["BudgetName"], {}


def _change_budget(identifier: str, old: Record, new: Record) -> None:
    del old
    budget = {"BudgetName": identifier, **new["Budget"]}
    call_service("budgets", "update_budget", {"AccountId": requests.account(), "NewBudget": budget})


TYPES: Mapping[str, ResourceType] = {
    "AWS::SSM::Document": ResourceType(
        create=_create_document,
        delete=lambda identifier, _: client("ssm").delete_document(Name=identifier),
        gone=("InvalidDocument",),
        change=_change_document,
        changeable=("Content", "UpdateMethod", TAGS),
    ),
    "AWS::Budgets::Budget": ResourceType(
        create=_create_budget,
        delete=lambda identifier, _: client("budgets").delete_budget(
            AccountId=requests.account(), BudgetName=identifier
        ),
        gone=("NotFoundException",),
        change=_change_budget,
        changeable=("Budget",),
        tagged=False,
    ),
}
