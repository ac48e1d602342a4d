"""`shoal embedded`: runs the AWS emulator in the foreground, prepared for the CDK, for the user's own commands."""

import click

from bootstrap.aws import cdk
from bootstrap.cli.command import command, option
from bootstrap.cli.output import say
from bootstrap.interrupt import mark_handled
from common.private_folders import temporary_folder


@command(
    json="",
    help="""\
Start an AWS emulator on this machine's loopback interface and prepare it for the CDK. With a command, run that against
it, end it afterwards, and exit with the command's status. Without a command, print the environment that another shell
needs to use it, and run until Ctrl-C. When it ends, all that was in it is gone.

It has no passwords: while it runs, every user of this machine can use it, and what they start in it runs as you. It
refuses web pages.
""",
    epilog="Examples: shoal embedded -- cdk deploy -c topology=demo; or shoal embedded, and in another shell paste "
    "the printed lines, then `shoal deploy demo`, `shoal preprocess --deployment demo ...`, `shoal destroy demo`.",
)
@option("--port", type=click.IntRange(0, 65535), metavar="P", help="where to listen (default: a free port)")
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[-- COMMAND]...",
    help="a command with its arguments, which is run against the emulator",
)
def run(port: int | None, words: tuple[str, ...]) -> int:
    from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
    from shoal_local_aws.command import require_command, serve

    with temporary_folder("shoal-embedded-") as folder:
        emulator = EmbeddedAws(folder, port, wheels=cdk.WHEELS)
        require_command(words, emulator)
        with emulator as aws:
            say(f"preparing the emulator on port {aws.port} ...")
            cdk.prepare(account=ACCOUNT, region=REGION, environment=aws.environment, log=folder / "cdk.log")
            try:
                return serve(words, aws)
            except KeyboardInterrupt as interrupt:
                if words:
                    raise
                mark_handled(interrupt)
    return 0
