"""Names of runs and datasets are distinguished from other text."""

import pytest

from bootstrap.aws.names import is_dataset, is_run

RUN, DATASET = "starter.20260102T030405-0a1b", f"datasets/{'0' * 32}/dataset.h5"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RUN, (True, False)),
        (DATASET, (False, True)),
        *((text, (False, False)) for text in (RUN[:-1], f"../{RUN}", f"{RUN}/..", "starter")),
        (DATASET.replace("dataset.h5", "other.h5"), (False, False)),
        (DATASET.replace("datasets/", "datasets/../"), (False, False)),
        (DATASET.replace("datasets/", "runs/"), (False, False)),
    ],
)
def test_names_of_runs_and_datasets_are_recognised(text, found):
    assert (is_run(text), is_dataset(text)) == found
