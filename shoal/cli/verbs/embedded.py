"""`shoal embedded`: runs the AWS emulator in the foreground, with the CDK's bootstrap done, for the user's commands."""

import click

from common.private_folders import temporary_folder
from shoal.aws import cdk
from shoal.cli.command import command
from shoal.cli.output import say


@command(
    json="",
    help="""\
Start an AWS emulator on this machine's loopback interface, prepared for the CDK. If a COMMAND is given, run it
against the emulator, and exit with its exit status. Otherwise print the environment variables for another shell, and
run until Ctrl-C. When the emulator stops, all its data are lost.

The emulator checks no passwords. While it runs, every user of this machine can use it, and can start programs in it
that run with your permissions. The emulator refuses requests from web pages.
""",
    epilog="Examples: shoal embedded -- cdk deploy -c topology=demo; or `shoal embedded`, then paste the printed "
    "lines into another shell, and run there `shoal deploy demo`, `shoal preprocess --deployment demo ...`, "
    "`shoal destroy demo`.",
)
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[-- COMMAND]...",
    help="command to run against the emulator, with its arguments",
)
def run(words: tuple[str, ...]) -> int:
    from shoal_local_aws.account import raise_quotas, use_emulator
    from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
    from shoal_local_aws.command import require_command, serve

    with temporary_folder("shoal-embedded-") as folder:
        emulator = EmbeddedAws(folder, wheels=cdk.WHEELS)
        require_command(words, emulator)
        with emulator as aws:
            say(f"preparing the emulator on port {aws.port} ...")
            cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=folder / "cdk.log")
            with use_emulator(aws):
                raise_quotas()  # the account is new, and would start no GPU
            try:
                return serve(words, aws)
            except KeyboardInterrupt:
                if words:
                    raise
    return 0
