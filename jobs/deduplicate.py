"""Raw lines to distinct texts, each with its modal rating.

In: lines of review files or, with `--ranges`, byte ranges of local ones (`ranges`). Out: a record a distinct
text (`records.DistinctText`), and count records.

Duplicates are combined inside the mapper, in bounded memory, so that a text repeated ten million times
costs the shuffle a few records a task. The easy mistake is to look for a byte-order mark on every task's
first line: only the split at the start of a file has one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from mrjob.compat import jobconf_from_env
from mrjob.protocol import BytesValueProtocol

from corpus.formats import BYTE_ORDER_MARK, MalformedLineError, is_blank, parse_snap_line
from corpus.text import digest, modal_rating, words
from jobs.job import Job
from jobs.ranges import parse_range, read_lines
from jobs.records import COUNTS_KEY, DistinctText, Record, counts_record, sum_counts
from jobs.settings import read_settings
from jobs.task import run_as_script

_COMBINE_BYTES = 32 << 20


class Deduplicate(Job):
    """Map: parse, clean, digest. Reduce: one rating a digest."""

    INPUT_PROTOCOL = BytesValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--ranges", action="store_true", help="the input names byte ranges of local files")

    def mapper_init(self) -> None:
        self.rating_range = read_settings(self.options).rating_range
        self.counts: Counter[str] = Counter()
        self.seen: dict[bytes, tuple[Counter[int], bytes]] = {}
        self.seen_bytes = 0
        self.at_start_of_file = jobconf_from_env("mapreduce.map.input.start", "0") == "0"

    def mapper(self, _: None, line: bytes) -> Iterator[Record]:
        if self.options.ranges:
            for range_line in read_lines(parse_range(line), self.report):
                self._count(range_line)
                if self.seen_bytes > _COMBINE_BYTES:
                    yield from self._combined()
            return
        if self.at_start_of_file:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self.at_start_of_file = False
        self.report(len(line))
        self._count(line)
        if self.seen_bytes > _COMBINE_BYTES:
            yield from self._combined()

    def mapper_final(self) -> Iterator[Record]:
        self.report(0, at_once=True)
        yield from self._combined()
        yield counts_record(self.counts)

    def reducer_init(self) -> None:
        self.counts = Counter()

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        if key == COUNTS_KEY:
            self.counts.update(sum_counts(values))
            return
        ratings: Counter[int] = Counter()
        cleaned = b""
        for value in values:
            tally, _, cleaned = value.partition(b"\t")
            for item in tally.split(b","):
                occurred, _, times = item.partition(b":")
                ratings[int(occurred)] += int(times)
        rating = modal_rating(ratings)
        self.counts["distinct"] += 1
        self.counts["conflicting"] += len(ratings) > 1
        self.counts[f"ratings.after.{rating}"] += 1
        yield DistinctText(key.decode(), rating, cleaned.decode()).record()

    def reducer_final(self) -> Iterator[Record]:
        yield counts_record(self.counts)

    def _count(self, line: bytes) -> None:
        if is_blank(line):
            return
        self.counts["lines"] += 1
        try:
            review = parse_snap_line(line, self.rating_range)
        except MalformedLineError as error:
            self.counts["malformed"] += 1
            self.counts[f"malformed_by_reason.{error.reason}"] += 1
            return
        cleaned = words(review.text)
        if not cleaned:
            self.counts["empty"] += 1
            return
        self.counts["texts"] += 1
        self.counts[f"ratings.before.{review.rating}"] += 1
        self._combine(digest(cleaned).hex().encode(), review.rating, " ".join(cleaned).encode())

    def _combine(self, key: bytes, rating: int, cleaned: bytes) -> None:
        known = self.seen.get(key)
        if known is None:
            known = self.seen[key] = (Counter(), cleaned)
            self.seen_bytes += len(cleaned)
        known[0][rating] += 1

    def _combined(self) -> Iterator[Record]:
        for key, (ratings, cleaned) in self.seen.items():
            tally = ",".join(f"{rating}:{times}" for rating, times in sorted(ratings.items()))
            yield key, tally.encode() + b"\t" + cleaned
        self.seen.clear()
        self.seen_bytes = 0


if __name__ == "__main__":
    run_as_script(Deduplicate)
