"""Resources of a stack of which one takes its time."""

from typing import Any

CODE = """
import json, time, urllib.request

def handler(event, context):
    if event["RequestType"] == event["ResourceProperties"]["To"]:
        time.sleep(float(event["ResourceProperties"]["Seconds"]))
    names = ("StackId", "RequestId", "LogicalResourceId")
    body = {"Status": "SUCCESS", "PhysicalResourceId": "x", **{name: event[name] for name in names}}
    data, headers = json.dumps(body).encode(), {"Content-Type": ""}
    urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data, headers, method="PUT"))
"""
ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
}
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


def resources(seconds: float, *, to: str = "Create") -> dict[str, Any]:
    """They are `Slow`, `Function` and `Role`; the first takes so long `to` be created or deleted."""
    token = {"Fn::GetAtt": ["Function", "Arn"]}
    properties = {"ServiceToken": token, "Seconds": str(seconds), "To": to}
    return {"Slow": {"Type": "Custom::Slow", "Properties": properties}, "Function": FUNCTION, "Role": ROLE}
