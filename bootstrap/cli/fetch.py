"""`shoal fetch`: models and records of training runs, copied here."""

import argparse
from pathlib import Path
from typing import Any

from bootstrap.cli.named import account_of, add_name, name_of
from bootstrap.cli.output import add_json, say, summary
from bootstrap.errors import ShoalError, UsageError
from bootstrap.progress import Bars
from corpus.counted import plural


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "fetch",
        help="copy the results of training runs here",
        description="Copy the models, records and summaries of a deployment's training runs to DIR/RUN/. What is "
        "there already is left. An object whose name Shoal gives to no file of a run is not copied; it is named, and "
        "the exit status is 1. A data bucket that outlived its deployment is named by --bucket.",
        epilog="Example: shoal fetch demo --output results",
    )
    add_name(parser)
    parser.add_argument("--bucket", metavar="BUCKET", help="a data bucket, instead of a deployment")
    parser.add_argument("--run", dest="wanted", metavar="RUN", help="one run (default: all)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder for the runs' folders")
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    if args.bucket and (args.name or args.deployment):
        raise UsageError("name a deployment or a --bucket, not both")
    account = account_of(args)
    bucket = args.bucket or _bucket(name_of(args), account)
    from bootstrap.lifecycle.fetch import fetch_runs

    with Bars() as bars:
        done = fetch_runs(account.client("s3"), bucket, args.output, bars=bars, run=args.wanted)
    rows = [
        ("from", f"s3://{bucket}/runs/"),
        ("to", str(args.output)),
        ("runs", ", ".join(done.runs) or "none: nothing was trained"),
        ("files", f"{plural(done.copied, 'file')} copied ({done.bytes / 1e6:,.1f} MB), {done.present} there before"),
        *(("not fetched", sentence) for sentence in done.refused),
    ]
    summary(args, {"bucket": bucket, "output": str(args.output), **vars(done)}, rows)
    if done.refused:
        say(
            f"shoal: {plural(len(done.refused), 'object')} of s3://{bucket}/runs/ can be no file below {args.output}; "
            "Shoal names none so, so find out who wrote them"
        )
    return 1 if done.refused else 0


def _bucket(name: str, account: Any) -> str:
    """The data bucket of a deployment: by its stack, or, when that is gone, by the bucket's tags."""
    from bootstrap.aws import stacks
    from bootstrap.aws.deployment import no_such_deployment
    from bootstrap.removal.sweep import KEPT, UNTOLD, find_things
    from infra import topology

    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    told = stacks.outputs(stack).get(topology.OUTPUT_DATA_BUCKET) if stack else None
    if told:
        return told
    found = find_things(name, account)
    kept = [thing.identifier for thing in found if thing.outcome == KEPT]
    if not kept:
        for thing in found:
            if thing.kind == "s3 bucket" and thing.outcome == UNTOLD:
                raise ShoalError(
                    f"whether '{name}' left a data bucket cannot be told: {thing.identifier} {thing.why}, or name the "
                    "bucket by --bucket"
                )
        raise no_such_deployment(name, account)
    if len(kept) > 1:
        raise ShoalError(f"several data buckets of '{name}' were kept: {', '.join(kept)}; name one by --bucket")
    return kept[0]
