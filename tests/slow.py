"""Stack resources with one slow resource."""

from typing import Any

from tests.local_aws.resources import ROLE

CODE = """
import json, time, urllib.request
import boto3

def handler(event, context):
    asked = event["ResourceProperties"]
    end = time.monotonic() + float(asked["Seconds"])
    while event["RequestType"] == asked["To"] and time.monotonic() < end:
        time.sleep(0.1)
        if asked["Until"] and boto3.client("ssm").get_parameters(Names=[asked["Until"]])["Parameters"]:
            break
    names = ("StackId", "RequestId", "LogicalResourceId")
    body = {"Status": "SUCCESS", "PhysicalResourceId": "x", **{name: event[name] for name in names}}
    data, headers = json.dumps(body).encode(), {"Content-Type": ""}
    urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data, headers, method="PUT"))
"""
FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Runtime": "python3.12",
        "Handler": "index.handler",
        "Timeout": 60,
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Code": {"ZipFile": CODE},
    },
}


def resources(seconds: float, *, to: str = "Create", until: str = "") -> dict[str, Any]:
    """Return the resources `Slow`, `Function` and `Role`.

    `Slow` takes this many seconds `to` be created or deleted, or waits `until` a parameter of this name exists.
    """
    token = {"Fn::GetAtt": ["Function", "Arn"]}
    properties = {"ServiceToken": token, "Seconds": str(seconds), "To": to, "Until": until}
    return {"Slow": {"Type": "Custom::Slow", "Properties": properties}, "Function": FUNCTION, "Role": ROLE}
