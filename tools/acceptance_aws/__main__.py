"""`python -m tools.acceptance_aws`: deploys, trains, terminates a node and destroys on a real account, with a report.

An administrator of the account starts this tool. The tool creates Shoal's policies, and a role that has only the policy
for users. All Shoal commands run as this role. With the environment that `shoal embedded` prints, the same steps run on
the emulator.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError
from infra.caller import is_local
from shoal.aws import cdk
from shoal.aws.account import Account, connect
from shoal.cli.aws_errors import sentence
from shoal.cli.output import confirm, print_error, say
from tools.acceptance_aws.life import AcceptanceRun
from tools.acceptance_aws.report import NAME, Report

_STEPS = """\
 1 check beliefs of the emulator about AWS, by requests that AWS should refuse
 2 create the policies of infra/policies/ that are missing, and the role ShoalAcceptance
 3 cdk bootstrap with them, if the region is not prepared
 4 as that role: shoal deploy, preprocess (generated reviews), train
 5 terminate a node while it trains, and wait until the other nodes continue and the run finishes
 6 shoal destroy, with its check that nothing is left; remove the role (the policies and ShoalToolkit remain)
 Step 6 runs in any case, also after Ctrl-C. The guard in the account deletes the deployment at the same limits."""


def main(arguments: Sequence[str]) -> int:
    """Run the tool. Return its exit status: 0 if all steps succeeded and nothing is left in the account."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except ShoalError as error:
        print_error(str(error))
    except (BotoCoreError, ClientError) as error:
        print_error(sentence(error))
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.acceptance_aws",
        description=f"{__doc__}\nWhat it does:\n{_STEPS}",
        epilog="A day later `shoal costs acceptance` shows what AWS has billed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--topology", default="starter", help="topology name or file (default: %(default)s)")
    parser.add_argument("--deployment", default="acceptance", help="deployment name (default: %(default)s)")
    parser.add_argument(
        "--max-dollars", type=_amount, default=10.0, metavar="X", help="cost limit (default: %(default)g)"
    )
    parser.add_argument("--hours", type=_amount, default=2.0, help="maximum duration (default: %(default)g)")
    parser.add_argument(
        "--output", type=Path, default=Path("results/acceptance"), metavar="DIR", help="(default: %(default)s)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _amount(text: str) -> float:
    """Parse a finite number above 0. `nan` is refused, because no cost would exceed such a limit."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return amount


def _run(options: argparse.Namespace) -> int:
    price = _price(options.topology, options.hours)
    require_price_within(price["price"], options.max_dollars)
    account = Account(connect(price["region"]))
    is_emulated = is_local(account.client("sts").meta.endpoint_url)
    say(f"On {'the emulator' if is_emulated else 'AWS'}, {price['region']}:\n{_STEPS}")
    most, limit = f"${price['price']:.2f}", f"${options.max_dollars:g}"
    say(f"{options.hours:g} hours with all machines running cost {most}; the limit is {limit}.")
    if not options.yes and not confirm("Start?"):
        return 1
    started = datetime.now(UTC)
    folder = (options.output / started.strftime("%Y%m%dT%H%M%S")).resolve()
    folder.mkdir(parents=True)
    named = Path(options.topology)
    source = named if named.suffix else cdk.TOPOLOGIES / f"{named}.yaml"
    report = Report(
        emulated=is_emulated,
        region=price["region"],
        topology=price["topology"],
        deployment=options.deployment,
        started=started.isoformat(timespec="seconds"),
        max_dollars=options.max_dollars,
        hours=options.hours,
        predicted=price["price"],
    )
    AcceptanceRun(report, account, source=source, folder=folder).run()
    say(f"{'passed' if report.passed else 'failed'}; the report is {folder / NAME}")
    return 0 if report.passed else 1


def _price(topology: str, hours: float) -> Mapping[str, Any]:
    """Return the plan that `shoal plan` prints for the topology. Raises ShoalError if Shoal would refuse the
    deployment."""
    if shutil.which("shoal") is None:
        raise ShoalError("the command `shoal` is not on PATH; activate the environment of `make setup`")
    found = subprocess.run(
        ["shoal", "plan", topology, "--hours", f"{hours:g}", "--json"], stdout=subprocess.PIPE, check=False, text=True
    )
    if not found.stdout:
        raise ShoalError(f"`shoal plan {topology}` failed")
    plan: Mapping[str, Any] = json.loads(found.stdout)["plans"][0]
    if plan["refused"]:
        raise ShoalError(" ".join(each["sentence"] for each in plan["findings"] if each["level"] == "error"))
    if plan["unknown"]:
        raise ShoalError(f"the price of {', '.join(map(str, plan['unknown']))} is unknown; run `make prices`")
    return plan


def require_price_within(price: float, limit: float) -> None:
    """Raise ShoalError if the predicted price exceeds the limit. Both are in dollars."""
    if price > limit:
        raise ShoalError(
            f"this can cost ${price:.2f}, more than the limit of ${limit:g}; lower --hours, or raise --max-dollars"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
