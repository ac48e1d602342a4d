import json

import boto3
import pytest
from shoal_guard.handlers.guard import main
from shoal_local_aws.faults.kinds import Denied, Throttled

from common import names


@pytest.mark.slow
def test_without_its_account_nothing_is_deleted_but_what_is_idle_ends(deploy, aws, monkeypatch):
    small = deploy()
    small.after(11.6)
    small.raise_groups()
    read = main._read

    def unread(bucket, key, *since):
        if key.endswith(".guard.json"):
            raise TimeoutError("S3 does not answer")
        return read(bucket, key, *since)

    monkeypatch.setattr(main, "_read", unread)
    with aws.faults.during(Throttled(service="ssm")), pytest.raises(main.GuardRoundError, match="GetParameters"):
        small.after(12)
    small.becomes("CREATE_COMPLETE")
    assert small.desired() == [0, 0]


@pytest.mark.parametrize(
    ("operations", "added", "copied", "end"),
    [
        (("GetParameters",), 0, True, 12),
        (("GetParameters",), 1, True, 13),
        (("GetParameters",), 0, False, 13),  # an hour later, because hours may have been added
        (("PutParameter",), 0, False, 12),
        (("GetParameters", "PutParameter"), 1, True, 13),
    ],
)
def test_a_deployment_ends_on_time_without_access_to_its_parameters(
    operations, added, copied, end, deploy, aws, monkeypatch
):
    small = deploy(kind="Guarded")
    if added:
        parameter = names.extension_parameter(small.name)
        small.client("ssm").put_parameter(Name=parameter, Value=str(added), Type="String")
    if copied:
        small.after(1)
    with aws.faults.during(*(Denied(service="ssm", operation=each) for each in operations)):
        for hours in (end - 0.6, end - 0.4, end - 0.1, end):
            small.becomes("CREATE_COMPLETE")
            with pytest.raises(main.GuardRoundError, match=operations[0]):
                small.after(hours)
    small.becomes("DELETE_COMPLETE")
    assert small.mails().count(f"Guard: {small.name} ends soon") == 1


@pytest.mark.parametrize("copy", [None, "{", '{"spent": 1}'])
def test_the_dollars_spent_are_kept_without_readable_parameters_and_without_a_copy(copy, deploy, aws):
    small = deploy(kind="Guarded")
    parameter = names.guard_parameter(small.name)
    small.client("ssm").put_parameter(Name=parameter, Value='{"spent": 40}', Type="String")
    if copy is not None:
        small.client("s3").put_object(Bucket=small.bucket, Key=f"requests/{small.name}.guard.json", Body=copy)
    with (
        aws.faults.during(Denied(service="ssm", operation="GetParameters")),
        pytest.raises(main.GuardRoundError, match="GetParameters"),
    ):
        small.after(2)
    small.after(2.1)
    assert small.account()["spent"] >= 40


def test_invalid_parameters_are_named_and_the_deployment_ends_nevertheless(deploy):
    small = deploy(kind="Guarded")
    parameters = (names.extension_parameter(small.name), names.guard_parameter(small.name))
    not_yet = json.dumps({"told": {"end": {"value": "x", "at": "2999-01-01T00:00:00+00:00"}}})
    for name, value in zip(parameters, ("many", not_yet), strict=True):
        small.client("ssm").put_parameter(Name=name, Value=value, Type="String")
    with pytest.raises(main.GuardRoundError) as error:
        small.after(11.6)
    assert all(f"the parameter {name} " in str(error.value) for name in parameters)
    assert f"Guard: {small.name} ends soon" in small.mails()
    assert small.account()["as_of"]
    with pytest.raises(main.GuardRoundError) as error:
        small.after(12)
    assert parameters[1] not in str(error.value)
    small.becomes("DELETE_COMPLETE")


def test_parameters_of_an_earlier_deployment_with_the_same_name_are_ignored(aws, deploy):
    notice = {"value": "x", "at": "2026-01-01T00:00:00+00:00"}
    left = {"spent": 3.9, "as_of": "2026-01-01T00:00:00+00:00", "rate": 1e6, "told": {"budget": notice}}
    for parameter, value in (
        (names.extension_parameter("again"), "100"),
        (names.guard_parameter("again"), json.dumps(left)),
    ):
        boto3.client("ssm").put_parameter(Name=parameter, Value=value, Type="String")
    small = deploy(kind="Guarded", name="again", budget=100.0)
    small.after(1)
    assert small.account()["spent"] < 3.9
    assert small.account()["told"] == {}
    small.after(11.6)
    small.after(12)
    small.becomes("DELETE_COMPLETE")
