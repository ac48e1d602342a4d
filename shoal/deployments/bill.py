"""Query of the costs of a deployment in AWS Cost Explorer.

A cost of zero does not mean that the deployment was free. Cost Explorer lags by a day. It attributes costs to the
deployment only from the day on which an administrator activated the tag as a cost allocation tag.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from common import names
from shoal.aws.account import Account

_COST_EXPLORER_REGION = "us-east-1"
"""Only region with a Cost Explorer endpoint. The endpoint returns the costs of all regions."""
_NO_TAG = "nothing yet: bills lag by a day, and the tag must be active in the Billing console, Cost allocation tags"


@dataclass(frozen=True, kw_only=True)
class Bill:
    """Costs in dollars, by AWS service, since the day `since`. If the costs are missing, `why` is the reason."""

    since: str
    services: Mapping[str, float]
    why: str = ""
    is_denied: bool = False
    """True if the user is not allowed to query Cost Explorer."""

    @property
    def total(self) -> float | None:
        """Total cost in dollars, or None if it is unknown."""
        return sum(self.services.values()) if self.services else None


def fetch_bill(account: Account, deployment: str, since: datetime) -> Bill:
    """Query Cost Explorer. Each query costs one cent. If Cost Explorer does not answer, the bill contains the reason in
    `why`."""
    start, end = since.date().isoformat(), (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    try:
        answer = account.client("ce", _COST_EXPLORER_REGION).get_cost_and_usage(
            TimePeriod={"Start": start, "End": end},
            Granularity="MONTHLY",
            Metrics=["UnblendedCost"],
            Filter={"Tags": {"Key": names.TAG_DEPLOYMENT, "Values": [deployment], "MatchOptions": ["EQUALS"]}},
            GroupBy=[{"Type": "DIMENSION", "Key": "SERVICE"}],
        )
    except ClientError as error:
        message = error.response["Error"].get("Message") or error.response["Error"].get("Code")
        denied = "AccessDenied" in error.response["Error"].get("Code", "")
        return Bill(since=start, services={}, why=f"Cost Explorer does not answer: {message}", is_denied=denied)
    except BotoCoreError as error:
        return Bill(since=start, services={}, why=f"Shoal cannot reach Cost Explorer: {error}")
    services: dict[str, float] = {}
    for period in answer.get("ResultsByTime", ()):
        for group in period.get("Groups", ()):
            name, amount = group["Keys"][0], float(group["Metrics"]["UnblendedCost"]["Amount"])
            services[name] = services.get(name, 0.0) + amount
    return Bill(since=start, services=services, why="" if services else _NO_TAG)
