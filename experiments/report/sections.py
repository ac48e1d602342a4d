"""Sections of a report, as data: the tables of each section, and the plots of each table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.report import rows
from experiments.report.subjects import MAX_LINES, ReportContent
from experiments.report.tables import MEASURES, Column, Plot, Section, TableSpec

_RUN = Column(key="run", head="run")
_DRAWN_AS = Column(key="drawn_as", head="drawn as")
_SINCE = Column(key="time", head="time since start", form=",.2f", is_time=True)
_PAID = Column(key="dollars", head="cost so far, $", form=",.2f")
_MEASURES = Column(key=MEASURES, head="", form=".4f")

_WHAT_RAN = (
    _RUN,
    Column(key="state", head="state"),
    Column(key="model", head="model"),
    Column(key="ranks", head="ranks"),
    Column(key="devices", head="on"),
    Column(key="where", head="where"),
    Column(key="rows", head="training rows", form=","),
    Column(key="epochs", head="epochs"),
    Column(key="global_batch", head="global batch", form=","),
    Column(key="several_starts", head="starts"),
    Column(key="began", head="began, UTC"),
    Column(key="data", head="data"),
    Column(key="settings", head="settings that differ"),
)
_TIME_AND_MONEY = (
    _RUN,
    Column(key="seconds", head="training, s", form=",.1f"),
    Column(key="rows_per_second", head="rows/s", form=",.0f"),
    Column(key="share_of_ideal", head="share of ideal", form=".0%"),
    Column(key="balanced", head="balanced", form=".0%"),
    Column(key="launched", head="total time", form=",.1f", is_time=True),
    Column(key="dollars", head="cost, $", form=",.2f"),
)


@dataclass(frozen=True, kw_only=True)
class _SectionSpec:
    key: str
    title: str
    tables: Sequence[TableSpec]
    text: str = ""


RUNS = (
    _SectionSpec(
        key="learning",
        title="Learning curves",
        text=f"The plots show the first {MAX_LINES} groups of runs. Runs that differ only in their seed are one group. "
        "Time includes evaluation, but not pauses before a run was resumed.",
        tables=(
            TableSpec(
                key="loss",
                title="Loss",
                rows=rows.losses,
                columns=(
                    _DRAWN_AS,
                    _RUN,
                    Column(key="of", head="rows"),
                    Column(key="step", head="step", form=","),
                    Column(key="epoch", head="epoch", form=".2f"),
                    _SINCE,
                    Column(key="loss", head="loss", form=".4f"),
                ),
                plots=tuple(
                    Plot(title=f"Loss by {x}", kind="lines", x=x, y="loss", by="group", style="of")
                    for x in ("epoch", "time")
                ),
                text="The loss on the training rows is a moving mean over a tenth of the recorded steps, without the "
                "short last batch of an epoch. The broad, pale line is for the validation rows.",
            ),
            TableSpec(
                key="epochs",
                title="Measures by epoch",
                rows=rows.epochs,
                columns=(_DRAWN_AS, _RUN, Column(key="epoch", head="epoch"), _SINCE, _PAID, _MEASURES),
                plots=(
                    Plot(title="Measure by time", kind="lines", x="time", y="measure_0", by="group"),
                    Plot(title="Measure by cost", kind="lines", x="dollars", y="measure_0", by="group"),
                ),
                text="Measures on the validation rows after each epoch. The plots show the first measure.",
            ),
        ),
    ),
    _SectionSpec(
        key="runs",
        title="Results",
        tables=(
            TableSpec(key="runs", title="Runs", rows=rows.several_runs, columns=_WHAT_RAN),
            TableSpec(
                key="measures",
                title="Measures",
                rows=rows.run_rows,
                columns=(_RUN, _MEASURES),
                upright=True,
                text="Measures on the test rows. For an unfinished run, on the validation rows after its latest epoch.",
            ),
            TableSpec(
                key="money",
                title="Time and money",
                rows=rows.run_rows,
                columns=_TIME_AND_MONEY,
                upright=True,
                plots=(
                    Plot(
                        title="Rows per second by ranks", kind="points", x="ranks", y="rows_per_second", several="ranks"
                    ),
                    Plot(title="Cost by time", kind="points", x="launched", y="dollars", by="group", several="run"),
                ),
            ),
            TableSpec(
                key="class-scores",
                title="Precision and recall by class",
                rows=rows.class_scores,
                labels=2,
                columns=(
                    _RUN,
                    Column(key="class", head="class"),
                    Column(key="rows", head="test rows", form=","),
                    Column(key="precision", head="precision", form=".1%"),
                    Column(key="recall", head="recall", form=".1%"),
                    Column(key=MEASURES, head="predicted as ", form=","),
                    Column(key="taken_for", head="most often predicted as"),
                ),
                text="The columns “predicted as” are the confusion matrix. The classes with the most wrong predictions "
                f"are first, at most {rows.MAX_NAMES} of each of the first {rows.MAX_RUNS} runs.",
            ),
            TableSpec(
                key="mistakes",
                title="Surest wrong predictions",
                rows=rows.mistakes,
                labels=2,
                columns=(
                    _RUN,
                    Column(key="label", head="class"),
                    Column(key="prediction", head="predicted as"),
                    Column(key="probability", head="probability", form=".1%"),
                    Column(key="words", head="first words of the row"),
                ),
                text="The wrong predictions on test rows with the highest probability, for each class, for the "
                f"first {rows.MAX_RUNS} runs. A dataset does not hold the original texts: these are the words that it "
                "keeps of a text, and … stands for words outside the vocabulary.",
            ),
            TableSpec(
                key="notes",
                title="Notes",
                rows=rows.notes,
                columns=(_RUN, Column(key="after", head="after, s", form=",.1f"), Column(key="note", head="note")),
                is_folded=True,
            ),
        ),
    ),
    _SectionSpec(
        key="ranks",
        title="Ranks",
        text="The share of ideal is the rate divided by the sum of the rates that the ranks reach alone. "
        "Balanced is the rate divided by the sum of the rates at which the ranks computed during the run.",
        tables=(
            TableSpec(
                key="shares",
                title="Shares of the ranks",
                rows=rows.shares,
                columns=(_RUN, Column(key="rank", head="rank"), _SINCE, Column(key="share", head="share", form=".1%")),
                plots=(Plot(title="Shares of the ranks", kind="lines", x="time", y="share", by="rank", each="run"),),
                text="Share of the global batch for each rank over time, for the first "
                f"{rows.MAX_RUNS} runs. With more than {MAX_LINES} ranks: the smallest, median and largest share.",
            ),
        ),
    ),
)

_ARM = Column(key="arm", head="arm")
EXPERIMENT = (
    TableSpec(
        key="arms",
        title="Arms",
        rows=rows.arms,
        columns=(
            _ARM,
            Column(key="place", head="on"),
            Column(key="ranks", head="ranks or cores"),
            Column(key="runs", head="runs"),
            Column(key="seconds", head="time, s", form=",.1f"),
            Column(key="least", head="least, s", form=",.1f"),
            Column(key="most", head="most, s", form=",.1f"),
            Column(key="rows_per_second", head="rows/s", form=",.0f"),
            Column(key="mb_per_second", head="MB/s", form=",.1f"),
            Column(key="kilobytes_a_step", head="kB sent per rank and step", form=",.1f"),
            Column(key="dollars", head="$ per run", form=",.2f"),
            Column(key="remark", head="remark"),
        ),
        plots=(Plot(title="Time of the arms", kind="bars", x="seconds", y="arm", ends=("least", "most")),),
        text="Times and rates are medians over the finished runs, without evaluation. In the plot, a line spans the "
        "shortest and the longest time.",
    ),
    TableSpec(
        key="speed-ups",
        title="Speed-ups",
        rows=rows.arms,
        labels=2,
        columns=(
            _ARM,
            Column(key="ranks", head="ranks or cores"),
            Column(key="speed_up", head="speed-up", form=".2f"),
            Column(key="efficiency", head="efficiency", form=".0%"),
            Column(key="of_bound", head="share of ideal", form=".0%"),
        ),
        plots=(Plot(title="Speed-up", kind="points", x="ranks", y="speed_up", ideal="ideal", several="ranks"),),
        text="The dashed line is linear scaling. Arms without an efficiency are not drawn. The share of ideal is the "
        "rate divided by the sum of the rates that the ranks reach alone, which no balancer can exceed.",
    ),
    TableSpec(
        key="measures-of-arms",
        title="Measures of the arms",
        rows=rows.measures_of_arms,
        columns=(
            _ARM,
            _MEASURES,
            Column(key="seconds_an_epoch_of_words", head="s per epoch", form=",.1f"),
            Column(key="words_a_second_of_words", head="words/s", form=",.0f"),
            Column(key="pip_loss_of_words", head="best PIP loss", form=",.2f"),
            Column(key="pip_mean_square_of_words", head="PIP mean square", form=".4g"),
            Column(key="loss_of_words", head="loss per pair", form=".4f"),
        ),
    ),
)

DATA = _SectionSpec(
    key="data",
    title="The data",
    text=f"Number of texts before and after the removal of duplicates, for the first {rows.MAX_DATASETS} datasets. "
    f"With more than {rows.MAX_NAMES} classes or words, only the most frequent are shown.",
    tables=(
        TableSpec(
            key="dataset",
            title="Datasets",
            rows=rows.datasets,
            columns=(
                Column(key="dataset", head="dataset"),
                Column(key="digest", head="digest"),
                Column(key="learned", head="runs in this report that trained on it"),
                *(
                    Column(key=key, head=head, form=",")
                    for key, head in {
                        "lines": "lines",
                        "malformed": "malformed",
                        "empty": "empty",
                        "texts": "texts",
                        "distinct": "distinct texts",
                        "train": "training rows",
                        "test": "test rows",
                        "tokens": "words kept",
                        "unknown_tokens": "of these, not in the vocabulary",
                    }.items()
                ),
            ),
            upright=True,
        ),
        *(
            TableSpec(
                key=key,
                title=title,
                rows=found,
                columns=(
                    Column(key="dataset", head="dataset"),
                    Column(key="name", head=what),
                    Column(key="before", head="all texts", form=","),
                    Column(key="after", head="distinct texts", form=","),
                ),
                plots=(Plot(title=title, kind="bars", x=("before", "after"), y="name", each="dataset"),),
            )
            for key, title, what, found in (
                ("ratings", "Texts by rating", "rating", rows.ratings),
                ("classes", "Texts by class", "class", rows.classes),
            )
        ),
        *(
            TableSpec(
                key=key,
                title=title,
                rows=found,
                columns=(
                    Column(key="dataset", head="dataset"),
                    Column(key="name", head=what),
                    Column(key="number", head=counted, form=","),
                ),
                plots=(Plot(title=title, kind="bars", x="number", y="name", each="dataset"),),
            )
            for key, title, what, counted, found in (
                ("lengths", "Lengths of texts", "kept words per text", "texts", rows.lengths),
                ("words", "Most frequent words", "word", "occurrences", rows.words),
            )
        ),
    ),
)


def sections(content: ReportContent) -> list[Section]:
    """Return the sections in the order of the page. Empty sections are left out."""
    all_sections = [
        _section(f"experiment-{number}", f"The experiment {each.kept.name}", rows.about(each), EXPERIMENT, each, number)
        for number, each in enumerate(content.experiments, 1)
    ]
    all_sections += [_section(each.key, each.title, each.text, each.tables, content) for each in (*RUNS, DATA)]
    return [each for each in all_sections if each.tables]


def _section(key: str, title: str, text: str, specs: Sequence[TableSpec], content: object, number: int = 1) -> Section:
    """Return a section, with unique keys for its tables. `number` distinguishes sections that have the same tables."""
    built = [table for spec in specs if (table := spec.build(content)) is not None]
    apart = f"-{number}" if number > 1 else ""
    tables = [replace(table, key=f"{table.key}{apart}") for table in built]
    return Section(key=key, title=title, text=text, tables=tables)
