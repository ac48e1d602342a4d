"""`shoal fetch`: copies models and records of training runs from the data bucket to this machine."""

from pathlib import Path

import click

from common.display import plural
from common.errors import UsageError
from shoal.cli.command import command, option
from shoal.cli.output import Result, Rows
from shoal.cli.output_folder import sole_writer
from shoal.cli.target import Target, target_options
from shoal.progress import Bars

_FETCHED: Rows = {
    "from": "s3://{bucket}/runs/",
    "to": "{output}",
    "runs": lambda done: ", ".join(done["runs"]) or "no runs",
    "files": "{copied:plural file} copied ({bytes:size}), {present} already present",
}


@command(
    help="Copy the models, records and summaries of a deployment's training runs to DIR/RUN/. Existing files "
    "are not changed. Objects with names that Shoal does not use are reported instead of copied, and the exit "
    "status is 1. "
    "If the deployment was deleted but its data bucket was kept, use --bucket.",
    epilog="Example: shoal fetch demo --output results",
)
@target_options
@option("--bucket", metavar="BUCKET", help="data bucket to fetch from, instead of a deployment")
@option("--run", "only", metavar="RUN", help="fetch only this run (default: all)")
@option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="folder for the results; each run gets its own folder in it",
)
def run(target: Target, bucket: str | None, only: str | None, output: Path) -> Result:
    if bucket and target.typed:
        raise UsageError("give a deployment or --bucket, not both")
    account = target.account
    from shoal.deployments.fetch import fetch_runs, find_data_bucket

    bucket = bucket or find_data_bucket(target.name, account)
    with sole_writer(output), Bars():
        done = fetch_runs(account.client("s3"), bucket, output, run=only)
    content = {"bucket": bucket, "output": str(output), **vars(done)}
    if not done.refused:
        return Result(content, [_FETCHED])
    failure = (
        f"{plural(len(done.refused), 'object')} in s3://{bucket}/runs/ not copied to {output}, because Shoal "
        f"does not use such names; find out who wrote them"
    )
    refused = [("not fetched", sentence) for sentence in done.refused]
    return Result(content, [_FETCHED, refused], status=1, failures=[failure])
