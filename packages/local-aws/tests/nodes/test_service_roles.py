"""Service-linked roles, and policies of KMS keys that name them."""

import json

import pytest
from botocore.exceptions import ClientError
from tests.local_aws.scaling import Group

SERVICE = "autoscaling.amazonaws.com"
ARN = f"arn:aws:iam::000000000000:role/aws-service-role/{SERVICE}/AWSServiceRoleForAutoScaling"


def allow(client):
    """Set the policy of a new key, which names the role of Auto Scaling."""
    statement = {"Effect": "Allow", "Principal": {"AWS": [ARN]}, "Action": "kms:CreateGrant", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    key = client("kms").create_key()["KeyMetadata"]["KeyId"]
    client("kms").put_key_policy(KeyId=key, PolicyName="default", Policy=document)
    client("kms").create_key(Policy=document)


def forget(client):
    """Delete the role, as in a new account."""
    client("iam").delete_service_linked_role(RoleName="AWSServiceRoleForAutoScaling")


@pytest.mark.parametrize("by", ["a user", "a group"])
def test_a_key_policy_names_the_role_of_auto_scaling_only_once_it_exists(by, aws, client, messages):
    with messages.raises(ClientError):
        allow(client)
    if by == "a user":
        role = client("iam").create_service_linked_role(AWSServiceName=SERVICE)["Role"]
        assert (role["RoleName"], role["Arn"]) == ("AWSServiceRoleForAutoScaling", ARN)
    else:
        Group(aws, client, "first")
    allow(client)
    forget(client)
