"""`shoal report`: what runs took and bought, beside what the reference's did."""

from bootstrap.cli.command import command, option
from bootstrap.cli.output import json_option, show
from bootstrap.errors import UsageError


@command(
    short_help="show the reference's tables",
    help="With --reference: the reference's tables, computed from its published seconds: prices in its rounding and "
    "exactly, speed-ups, what its mixed GPUs reached of their own rates, preprocessing, and its baseline by epoch.",
    epilog="Example: shoal report --reference",
)
@option("--reference", is_flag=True, help="show the reference's tables")
@json_option
def run(*, reference: bool, as_json: bool) -> int:
    """Run `shoal report`."""
    if not reference:
        raise UsageError("give --reference")
    from bootstrap.cli import reference_tables

    show(reference_tables.content(), "\n".join(reference_tables.lines()), as_json=as_json)
    return 0
