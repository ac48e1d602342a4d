"""Writes docs/reference/permissions.md: Shoal's policies as they can be pasted, and why they have what no test needs.

`python -m tools.permissions` writes it; a test fails where the document is not what this writes.
"""

import argparse
import json
from pathlib import Path

from infra.policies import BOUNDARY, EXECUTION, POLICIES, QUALIFIER, TOOLKIT, TOOLKIT_STACK, USER, document, reasons

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "permissions.md"
_NAMED, _COMPUTE = EXECUTION
_INTRODUCTION = f"""\
# Permissions

What Shoal needs in an AWS account, as policies. Each is made from `infra/policies/` by
`python -m tools.permissions`; in `make demo` they are in force, in an emulated account that checks every request.

| Policy | For | Attach it to |
| --- | --- | --- |
| `{USER}` | whoever plans, deploys, runs and destroys | the person's role or user |
| `{_NAMED}`, `{_COMPUTE}` | CloudFormation | the CDK's execution role, in place of AdministratorAccess |
| `{BOUNDARY}` | the most that a role of a deployment may do | every role that CloudFormation creates |
| `{TOOLKIT}` | the most that a role of the CDK may do | the roles of `cdk bootstrap` |

`shoal deploy` in an account and region that is not prepared for Shoal creates all but the first of these policies
and runs `cdk bootstrap` with them. Whoever does that first needs more than `{USER}`: the CDK's bootstrap creates
roles. An administrator can do it once, from a checkout of Shoal, for everybody:

```
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

`{_NAMED}` lets CloudFormation create roles only with `{BOUNDARY}` as their permissions boundary. `shoal deploy`
finds that policy in the account and sets the boundary by itself. With plain `cdk deploy` give it:
`-c permissions_boundary=arn:aws:iam::ACCOUNT:policy/{BOUNDARY}`, or write `permissions_boundary` in the topology.

Other apps of the CDK in the same account and region have roles of their own, those of `cdk bootstrap` without
`--qualifier`, and `{USER}` may assume none of them. `shoal plan` warns where CloudFormation's role for Shoal has
another policy, such as AdministratorAccess. Without the last three options the roles are the CDK's usual ones, by
which whoever has `{USER}` is an administrator.

After an update of Shoal the policies may have changed: compare them with this page, and give each one that differs a
new version (`aws iam create-policy-version --set-as-default`). `shoal deploy` does that only when it prepares a region,
and then also where somebody has changed them.

Beside these policies, add what only you can know: reading your own buckets where reviews are (`s3:GetObject` and
`s3:ListBucket`, for the `inputs` and the `data: bucket:` of a topology), and your own KMS key where a topology names
one (`kms:Decrypt`, `kms:GenerateDataKey`). `make prices` needs `pricing:GetProducts`.
"""
_TEXTS = {
    USER: f"""\
It reads names and states in the whole account, and changes what has Shoal's names or the tag `shoal:deployment`. It
assumes two roles of the CDK: the one for deployments makes CloudFormation create whatever `{_NAMED}` and `{_COMPUTE}`
allow, by a template of this person's; the other one uploads files. `ec2:RunInstances` is for two dry runs. The
preflight's finds in seconds what would otherwise fail once the cluster is paid for. Auto Scaling's checks the
caller's permissions when nodes change their zone or their market. IAM cannot limit the action to dry runs: it allows
instances without a role, and with a role `Shoal-*` those with the tag `shoal:deployment`.

| It can | It cannot |
| --- | --- |
| deploy, change and delete the stacks `Shoal-*` | change a stack of another name, also by the CDK's role |
| have CloudFormation create roles `Shoal-*` within `{BOUNDARY}` | get another role, but for two of the CDK's |
| read all buckets by such a role, and use the account's keys | write into other accounts, or outside Shoal's folders |
| give other code to all deployments of the account | give code to other apps of the CDK |""",
    _NAMED: """\
What the handlers of CloudFormation's resource types need, by AWS's registry of types, for the types in Shoal's
templates: on Shoal's names, where IAM has names.""",
    _COMPUTE: """\
The same for what IAM knows by ids alone. It is a policy of its own because IAM limits the length of each.""",
    BOUNDARY: """\
It grants nothing by itself. A role of a deployment may do what its own policies allow and this allows, too.
It writes into buckets of its own account alone. `ReadBuckets` names all buckets, because `inputs` may be in any. An
administrator can name fewer there: those with reviews, `shoal-*`, `cdk-shoal-assets-*`, the data buckets, and those
that `infra/network.py` names for EMR, Amazon Linux and Systems Manager.""",
    TOOLKIT: """\
It grants nothing by itself. A role of the CDK may change Shoal's stacks alone: a stack of another app has a role of its
own, by which CloudFormation acts for whoever updates that stack.""",
}


def made() -> str:
    """The document."""
    return "\n".join([_INTRODUCTION, *(_section(policy, text) for policy, text in _TEXTS.items())])


def pasted(policy: str) -> str:
    """A policy as JSON."""
    return json.dumps(document(policy), indent=2) + "\n"


def _section(policy: str, text: str) -> str:
    rows = [
        f"| {sid} | `{grant}` | {reason} |" for sid, found in reasons(policy).items() for grant, reason in found.items()
    ]
    table = [
        "",
        "Grants that no test needs, with the reason:",
        "",
        "| Statement | Grant | Reason |",
        "| --- | --- | --- |",
    ]
    return "\n".join(
        [f"## {policy}", "", text, "", "```json", pasted(policy) + "```", *([*table, *rows] if rows else []), ""]
    )


def main() -> None:
    """Print the policy of a name, or write the document."""
    parser = argparse.ArgumentParser(prog="python -m tools.permissions", description=main.__doc__)
    parser.add_argument("policy", nargs="?", choices=POLICIES, help="print this one as JSON")
    policy = parser.parse_args().policy
    if policy:
        print(pasted(policy), end="")
    else:
        DOCUMENT.write_text(made())


if __name__ == "__main__":
    main()
