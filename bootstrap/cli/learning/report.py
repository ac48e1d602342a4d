"""`shoal report`: writes an HTML page that compares runs, their times and costs."""

import time
from pathlib import Path

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.figures import size
from bootstrap.cli.output import Result
from common.errors import ShoalError


@command(
    help="Write one HTML page on trainings: what ran, on what, from which data; where every second and dollar went; "
    "what was learnt; what each rank did; and, of several, how they compare. Each plot has its numbers as a table and "
    "as CSV, and nothing on the page needs a network. A run may still go on, or have been cut off. DIR is the --output "
    "of `shoal train` or of `shoal preprocess`, or a folder of several.",
    epilog="""\
\b
Examples:
  shoal report results/model
  shoal report results/lstm results/fasttext results/data --output report.html
""",
)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="the page (default: report.html in the first DIR); one that is there is replaced",
)
def run(*, folders: tuple[Path, ...], output: Path | None) -> Result:
    from common.files import write_whole
    from experiments.report.writing import report

    output = output or folders[0] / "report.html"
    found = report(folders, now=time.time())
    content = found.page.encode()
    try:
        write_whole(output, content)
    except OSError as error:
        raise ShoalError(f"cannot write {output}: {error.strerror}; choose another --output") from error
    told = {
        "report": str(output),
        "bytes": len(content),
        "runs": [vars(each) for each in found.runs],
        "warnings": list(found.warnings),
    }
    rows = [*found.summary.items(), *(("warning", each) for each in found.warnings)]
    return Result(told, [[("report", str(output)), ("size", size(len(content))), *rows]])
