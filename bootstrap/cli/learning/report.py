"""`shoal report`: writes an HTML page that compares runs, their times and costs."""

import time
from pathlib import Path

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.output import Result
from common.display import size
from common.errors import ShoalError


@command(
    help="Write an HTML report on training runs: learning curves, metrics, the confusion matrix and the surest wrong "
    "predictions of classifiers, data, hardware, time and cost, the work of each rank, and a comparison of several "
    "runs. Each plot comes with its numbers as a table and as CSV. The page needs no network. Runs can be unfinished. "
    "DIR is the --output of `shoal train` or `shoal preprocess`, or a folder that contains several such folders.",
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
    help="file for the page; without an ending, .html is added (default: report.html in the first DIR)",
)
@option("--force", is_flag=True, help="replace an existing file that is not a report")
def run(*, folders: tuple[Path, ...], output: Path | None, force: bool) -> Result:
    from common.files import require_replaceable, write_whole
    from experiments.report.writing import is_report, report

    output = output or folders[0] / "report.html"
    if not output.suffix:
        output = output.with_name(f"{output.name}.html")
    if output.exists() and not is_report(output):
        require_replaceable(f"{output} exists and is not a report", ShoalError, force=force)
    result = report(folders, now=time.time())
    content = result.page.encode()
    try:
        write_whole(output, content)
    except OSError as error:
        raise ShoalError(f"cannot write {output}: {error.strerror}; choose another --output") from error
    written = {
        "report": str(output),
        "bytes": len(content),
        "runs": [vars(each) for each in result.runs],
        "warnings": list(result.warnings),
    }
    rows = [*result.summary.items(), *(("warning", each) for each in result.warnings)]
    return Result(written, [[("report", str(output)), ("size", size(len(content))), *rows]])
