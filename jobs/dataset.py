"""Job that makes a dataset from raw reviews. `shoal preprocess --deployment` runs this job.

python -m jobs.dataset reviews/*.json.gz --output-dir out
python -m jobs.dataset -r emr --cluster-id j-... 's3://bucket/*.gz' --output-dir s3://bucket/out
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain

import orjson
from mrjob.step import MRStep

from corpus.reading.storage import PART_PREFIX, list_files, open_lines, write_text
from corpus.reading.tally import Tally
from jobs.choose import choose_vocabulary, read_candidates, read_vocabulary_choice, write_choice
from jobs.encode import Encoder
from jobs.job import ONE_REDUCER, run_as_script
from jobs.merge import merge_parts
from jobs.records import Record, gathered, read_records
from jobs.vocabulary import Vocabulary

STEPS = ("deduplicate", "count words", "choose vocabulary", "encode", "merge")
"""Names of the steps."""


class MakeDataset(Vocabulary):
    """Writes dataset.h5 and counts.json to --output-dir; on S3, to a folder in it, named by the digest.

    The output of the last step is one line of JSON, with the address of the dataset, its digest and its counts."""

    keeps_texts = needs_output = True

    def steps(self) -> list[MRStep]:
        return [
            *self.counting(),
            MRStep(reducer=self.choose, jobconf=ONE_REDUCER),
            MRStep(reducer=self.encode),
            MRStep(reducer=self.merge, jobconf=ONE_REDUCER),
        ]

    def choose(self, _: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: write the vocabulary and the tally, and yield the parts to encode.

        The tally is no output, so that all records are of equal size: mrjob's runners for one machine give each task
        the same number of bytes.
        """
        tally = Tally()
        choice = choose_vocabulary(read_candidates(read_records(values), self.plan, tally), self.plan, tally)
        write_choice(choice, self.plan.choice)
        write_text(self.plan.tally, "".join(f"{key.decode()}\t{value.decode()}\n" for key, value in tally.records()))
        for address in list_files(self.plan.texts):
            yield address.rpartition(f"/{PART_PREFIX}")[2].partition(".")[0].encode(), b""

    def encode(self, key: bytes, _: Iterable[bytes]) -> Iterator[Record]:
        """Reducer: write the rows of a part, and yield their counts."""
        if self._encoder is None:
            self._encoder = Encoder(self.plan, read_vocabulary_choice(self.plan.choice))
        yield from gathered(self._encoder.write(key.decode(), self.report_bytes).records())

    _encoder: Encoder | None = None

    def merge(self, _: bytes, values: Iterable[bytes]) -> Iterator[tuple[None, bytes]]:
        """Reducer: write the dataset, and yield its description."""
        tally = Tally()
        for key, value in read_records(chain(open_lines(self.plan.tally), values)):
            tally.add_records(key, [value])
        yield None, orjson.dumps(asdict(merge_parts(self.plan, tally, self.report_bytes)))


if __name__ == "__main__":
    run_as_script(MakeDataset)
