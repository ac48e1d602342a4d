"""`shoal fetch`: models and records of training runs, copied here."""

from pathlib import Path
from typing import Any

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.named import Target, target_options
from bootstrap.cli.output import json_option, print_error, summary
from bootstrap.errors import ShoalError, UsageError
from bootstrap.progress import Bars
from corpus.display import plural


@command(
    short_help="copy the results of training runs here",
    help="Copy the models, records and summaries of a deployment's training runs to DIR/RUN/. Files that are there "
    "already stay as they are. An object whose name Shoal gives to no file of a run is not copied; it is named, and "
    "the exit status is 1. A data bucket that outlived its deployment is named by --bucket.",
    epilog="Example: shoal fetch demo --output results",
)
@target_options
@option("--bucket", metavar="BUCKET", help="a data bucket, instead of a deployment")
@option("--run", "only", metavar="RUN", help="one run (default: all)")
@option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="the folder for the runs' folders",
)
@json_option
def run(target: Target, bucket: str | None, only: str | None, output: Path, as_json: bool) -> int:
    """Do it."""
    if bucket and target.typed:
        raise UsageError("name a deployment or a --bucket, not both")
    account = target.account
    bucket = bucket or _bucket(target.name, account)
    from bootstrap.lifecycle.fetch import fetch_runs

    with Bars() as bars:
        done = fetch_runs(account.client("s3"), bucket, output, bars=bars, run=only)
    rows = [
        ("from", f"s3://{bucket}/runs/"),
        ("to", str(output)),
        ("runs", ", ".join(done.runs) or "none: nothing was trained"),
        ("files", f"{plural(done.copied, 'file')} copied ({done.bytes / 1e6:,.1f} MB), {done.present} there before"),
        *(("not fetched", sentence) for sentence in done.refused),
    ]
    summary({"bucket": bucket, "output": str(output), **vars(done)}, rows, as_json=as_json)
    if done.refused:
        print_error(
            f"{plural(len(done.refused), 'object')} of s3://{bucket}/runs/ can be no file below {output}; "
            "Shoal names none so, so find out who wrote them"
        )
    return 1 if done.refused else 0


def _bucket(name: str, account: Any) -> str:
    """The data bucket of a deployment: by its stack, or, when that is gone, by the bucket's tags."""
    from bootstrap.aws import stacks
    from bootstrap.aws.deployment import no_such_deployment
    from bootstrap.removal.sweep import KEPT, UNVERIFIED, find_resources
    from infra import topology

    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    told = stacks.outputs(stack).get(topology.OUTPUT_DATA_BUCKET) if stack else None
    if told:
        return told
    found = find_resources(name, account)
    kept = [thing.identifier for thing in found if thing.outcome == KEPT]
    if not kept:
        for thing in found:
            if thing.kind == "s3 bucket" and thing.outcome == UNVERIFIED:
                raise ShoalError(
                    f"whether '{name}' left a data bucket cannot be told: {thing.identifier} {thing.why}, or name the "
                    "bucket by --bucket"
                )
        raise no_such_deployment(name, account)
    if len(kept) > 1:
        raise ShoalError(f"several data buckets of '{name}' were kept: {', '.join(kept)}; name one by --bucket")
    return kept[0]
