"""The CloudFormation type of Budgets, which ministack lacks."""

from collections.abc import Mapping

from shoal_local_aws.cloudformation.resource_type import Created, ResourceType, call_service
from shoal_local_aws.seams import requests
from shoal_local_aws.seams.cloudformation import generated_name
from shoal_local_aws.service import Record, client


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
