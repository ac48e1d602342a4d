"""The CloudFormation type of Budgets, which ministack lacks."""

from collections.abc import Mapping

from embedded.cloudformation.resource_type import Created, ResourceType, call_service
from embedded.seams import requests
from embedded.seams.cloudformation import generated_name
from embedded.service import Record, client


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
