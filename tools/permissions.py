"""Prints Shoal's policies as JSON, and generates the reference page that explains the policies."""

import argparse
import json

from infra.policies import BOUNDARY, EXECUTION, POLICIES, QUALIFIER, TOOLKIT, TOOLKIT_STACK, USER, document, reasons

_NAMED, _COMPUTE = EXECUTION
_INTRODUCTION = f"""\
# Permissions

Shoal needs these IAM policies in an AWS account. `infra/policies/` declares them. The emulated account of `make demo`
has the same policies, and checks every request.

| Policy | Purpose | Attach it to |
| --- | --- | --- |
| `{USER}` | lets a person plan, deploy, run and destroy | the person's role or user |
| `{_NAMED}`, `{_COMPUTE}` | let CloudFormation create stacks | the CDK's execution role, not AdministratorAccess |
| `{BOUNDARY}` | limits the roles of a deployment | every role that CloudFormation creates |
| `{TOOLKIT}` | limits the roles of the CDK | the roles of `cdk bootstrap` |

The first `shoal deploy` in an account and region creates all but the first policy, and runs `cdk bootstrap` with them.
That needs more rights than `{USER}`, because `cdk bootstrap` creates roles. An administrator can do it once for
everybody, in a checkout of Shoal:

```console
for name in {" ".join(POLICIES)}; do
  python -m tools.permissions $name > $name.json
  aws iam create-policy --policy-name $name --policy-document file://$name.json
done
policies=arn:aws:iam::ACCOUNT:policy
cdk bootstrap aws://ACCOUNT/REGION --qualifier {QUALIFIER} --toolkit-stack-name {TOOLKIT_STACK} \\
  --cloudformation-execution-policies $policies/{_NAMED},$policies/{_COMPUTE} \\
  --custom-permissions-boundary {TOOLKIT} --apply-permissions-boundary-to-all-roles
aws iam attach-role-policy --role-name ROLE-OF-THE-PERSON --policy-arn $policies/{USER}
```

Notes:

- **Boundary.** `{_NAMED}` lets CloudFormation create roles only with `{BOUNDARY}` as permissions boundary.
  `shoal deploy` sets it. For plain `cdk deploy` add
  `-c permissions_boundary=arn:aws:iam::ACCOUNT:policy/{BOUNDARY}`, or write `permissions_boundary` in the topology.
- **Other CDK apps.** They use the roles of `cdk bootstrap` without `--qualifier`. `{USER}` cannot assume those roles.
- **Default roles.** Without the last three options of `cdk bootstrap`, everyone with `{USER}` is an administrator.
  `shoal plan` warns if CloudFormation's role for Shoal has a different policy, such as AdministratorAccess.
- **Updates.** A new version of Shoal can have different policies. Compare the account's policies with this page, and
  update those that differ with `aws iam create-policy-version --set-as-default`. `shoal deploy` updates policies only
  when it prepares a region.
- **Advice.** Some commands that Shoal shows need an administrator, such as those for quotas, or the owner of a network
  or bucket.
- **Your own resources.** For buckets in `inputs` and `data: bucket:`, add `s3:GetObject` and `s3:ListBucket`. For your
  KMS key, add `kms:Decrypt` and `kms:GenerateDataKey`. So that nodes in your own `network` can change their market, or
  use an image of another account, add `ec2:RunInstances` for the subnet or the image. `make prices` needs
  `pricing:GetProducts`.
"""
_TEXTS = {
    USER: f"""\
The policy reads names and states in the whole account. It changes only resources with Shoal's names or with the tag
`shoal:deployment`. It allows assuming two roles of the CDK. Through one role, CloudFormation creates what `{_NAMED}`
and `{_COMPUTE}` allow. The other role uploads files.

If nodes change their zone or market, Auto Scaling tests a launch with the caller's rights. IAM cannot limit
`ec2:RunInstances` to tests, so the policy limits it to what nodes of a deployment are: their role is `Shoal-*`, and
their tag, subnet, security group and launch template name a deployment. Their image belongs to Amazon or the account.
They have no disk from a snapshot, unless a deployment owns the snapshot. The same person may terminate them.

| It can | It cannot |
| --- | --- |
| deploy, change and delete the stacks `Shoal-*` | change stacks with other names, also through the CDK's role |
| start instances of any type, with a role and in a network of any deployment | start instances in another network |
| open shells on nodes of all deployments, and read their consoles | do the same on other instances |
| delete the endpoints of GuardDuty's agent in all networks | delete other endpoints without a deployment's tag |
| have CloudFormation create roles `Shoal-*` within `{BOUNDARY}` | obtain another role, except two of the CDK |
| read all buckets through such a role; use the account's keys | write to other accounts |
| write and delete objects in all buckets of the account through such a role, as below | write or delete other objects |
| change the code of all deployments of the account | change the code of other CDK apps |""",
    _NAMED: """\
The policy grants what CloudFormation's handlers need for the resource types in Shoal's templates, according to AWS's
registry of resource types. It is limited to Shoal's names.""",
    _COMPUTE: """\
The policy grants the same for resources that IAM identifies only by ID. It is a separate policy because IAM limits the
length of a policy.""",
    BOUNDARY: """\
The boundary grants nothing by itself. A role of a deployment can do what both its own policies and the boundary allow.
`ReadBuckets` names all buckets, because `inputs` can be in any bucket.
An administrator can restrict it to buckets with reviews, `shoal-*`, `cdk-shoal-assets-*`, the data buckets, and the
buckets that `infra/network.py` names for EMR, Amazon Linux and Systems Manager.

A role can write and delete only in buckets of its own account: everything in buckets `shoal-*`, and in all other
buckets, because a topology can name its data bucket, these objects:

| keys with | content |
| --- | --- |
| `runs/*.????????T??????-????/`, `models/shoal-` | runs of Shoal, models of SageMaker jobs |
| `datasets/`, `work/`, `nodes/`, `requests/` | everything, also objects of other programs |

If no topology names a data bucket, remove the statement `WriteIntoDataBuckets`. Otherwise name the buckets in it.""",
    TOOLKIT: """\
The boundary grants nothing by itself. With it, a role of the CDK can change only Shoal's stacks. A stack of a
different app has its own role, with which CloudFormation acts.""",
}


def page() -> str:
    """Return the page in Markdown. For each policy, the page has its purpose, its JSON, and the reasons for grants that
    no test needs."""
    return "\n".join([_INTRODUCTION, *(_section(policy, text) for policy, text in _TEXTS.items())])


def pasted(policy: str) -> str:
    """Return the JSON of a policy."""
    return json.dumps(document(policy), indent=2) + "\n"


def _section(policy: str, text: str) -> str:
    rows = [
        f"| {sid} | `{grant}` | {reason} |" for sid, found in reasons(policy).items() for grant, reason in found.items()
    ]
    table = [
        "",
        "No test needs these grants. The table gives the reason for each:",
        "",
        "| Statement | Grant | Reason |",
        "| --- | --- | --- |",
    ]
    return "\n".join(
        [f"## {policy}", "", text, "", "```json", pasted(policy) + "```", *([*table, *rows] if rows else []), ""]
    )


def main() -> None:
    """Print the JSON of the policy that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.permissions", description=main.__doc__)
    parser.add_argument("policy", choices=POLICIES, help="name of the policy")
    print(pasted(parser.parse_args().policy), end="")


if __name__ == "__main__":
    main()
