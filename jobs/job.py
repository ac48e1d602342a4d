"""Base class of the jobs: ordinary MRJobs that read raw reviews.

mrjob's options, its configuration file and its runners work as for any other MRJob. Before the first step, the job
inspects the reviews, as `shoal preprocess` does, and writes a plan and a list of tasks. A task is a list of byte
ranges, which its mapper reads. So all runners treat compressed files, long lines and damaged files alike.

Bad data ends a task with a sentence instead of a traceback. Counters only show progress: a retried task counts twice.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cached_property
from inspect import cleandoc
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar
from uuid import uuid4
from weakref import finalize

if sys.version_info >= (3, 12):
    import setuptools  # noqa: F401  # brings distutils, which mrjob needs

from mrjob.conf import load_opts_from_mrjob_confs
from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol, BytesValueProtocol

from common.errors import DataError, explain_os_error, is_full_disk
from common.options import argparse_argument
from common.private_folders import temporary_folder
from corpus.reading import s3
from corpus.reading.formats import class_name
from corpus.reading.ranges import read_task
from corpus.reading.s3 import is_s3
from corpus.reading.storage import exists, join, open_lines, remove_files, write_text
from corpus.reading.tally import Tally
from jobs.input_options import CLASSES, READING, TEST_FILES, read_inputs
from jobs.job_settings import LIMITS, PRESET, SETTINGS, read_settings
from jobs.plan import FAILURE_NAME, PLAN_NAME, WORK_VARIABLE, Plan
from jobs.preparation import prepare_work
from jobs.records import Record, block_of, part_name
from jobs.texts import read_texts

COUNTER = ("shoal", "bytes")
FAILURE_PREFIX = "shoal: "
ONE_REDUCER = {"mapreduce.job.reduces": 1, "mapreduce.reduce.speculative": "false", "mapreduce.task.timeout": 0}
"""Properties of a step with one reducer, which may work longer than Hadoop waits for its output."""

_NODE_PYTHON = ["shoal-python"]
"""Python of a deployment's nodes, which has the jobs and their libraries."""
_CLUSTERS = ("dataproc", "emr", "hadoop")
_REPORT_BYTES = 1 << 20
# A task should run for longer than it takes to start.
_TASK_BYTES = 64 << 20
_MAX_REDUCERS = 256


class ReviewsJob(MRJob):
    """Base class of the jobs. The first step of a job has the mapper `read_reviews`."""

    INPUT_PROTOCOL = BytesValueProtocol
    INTERNAL_PROTOCOL = BytesProtocol
    OUTPUT_PROTOCOL = BytesProtocol
    JOBCONF: ClassVar[dict[str, Any]] = {
        # Each file is one task: a list of byte ranges, or the output of one reducer.
        "mapreduce.input.fileinputformat.split.minsize": 1 << 40,
        # Blocks are packed numbers in base64, which Snappy makes smaller by only a twelfth.
        "mapreduce.map.output.compress": "false",
        # A reducer that waits for the last mappers occupies memory in which a mapper could run.
        "mapreduce.job.reduce.slowstart.completedmaps": 0.95,
    }

    needs_output = False
    """Whether the job writes files, so that --output-dir is required."""
    _unreported = 0

    def configure_args(self) -> None:
        super().configure_args()
        for each in (*TEST_FILES, CLASSES, *READING, *LIMITS, PRESET, *SETTINGS):
            self.arg_parser.add_argument(*each.flags, **argparse_argument(each))

    def _usage(self) -> str:
        about = cleandoc(type(self).__doc__ or "")
        return f"%(prog)s [options] [files, folders, 'patterns' or s3://... of reviews]\n\n{about}"

    @cached_property
    def plan(self) -> Plan:
        """Plan of the task that this process runs."""
        return Plan.read(os.environ[WORK_VARIABLE])

    def jobconf(self) -> dict[str, Any]:
        return {**super().jobconf(), "mapreduce.job.reduces": min(_MAX_REDUCERS, 1 << self.plan.part_bits)}

    def make_runner(self) -> Any:
        """Write the plan and the tasks, and return the runner. They are removed when this job is no longer used.

        Raises DataError for unusable input.
        """
        options = self.options
        if len(options.args) == 1 and options.args[0].rpartition("/")[2] == PLAN_NAME:
            self.plan = Plan.read(options.args[0].removesuffix(f"/{PLAN_NAME}"))
        else:
            self.plan = self._new_plan()
        options.args = [f"{self.plan.tasks}/"]
        options.check_input_paths = False
        options.cmdenv = {**(options.cmdenv or {}), WORK_VARIABLE: self.plan.work}
        # Tasks run where the jobs and their libraries are installed, so nothing has to be shipped.
        options.bootstrap_mrjob = options.bootstrap_mrjob or False
        if options.runner in _CLUSTERS:
            self._set_default("task_python_bin", _NODE_PYTHON)
        if options.runner == "emr":
            self._set_default("cloud_tmp_dir", f"{self.plan.work}/mrjob/")
            self._set_default("region", s3.client().meta.region_name)  # mrjob's own default is us-west-2
            # Else mrjob waits up to ten minutes for the logs of each step. Tasks write their errors to the work folder.
            self._set_default("read_logs", False)
        if options.runner not in _CLUSTERS:
            options.cmdenv["PYTHONPATH"] = str(Path(__file__).parents[1])
        return super().make_runner()

    def _set_default(self, name: str, value: Any) -> None:
        """Set an option of mrjob that neither the command line nor a configuration file sets."""
        read = load_opts_from_mrjob_confs(self.options.runner, self.options.conf_paths)
        if getattr(self.options, name, None) is None and all(options.get(name) is None for _, options in read):
            setattr(self.options, name, value)

    def run_job(self) -> None:
        """Run all steps. If a task could not use its data, exit with its sentence."""
        try:
            super().run_job()
        except SystemExit:
            if "plan" in vars(self) and exists(self.plan.failure):
                raise DataError(b"".join(open_lines(self.plan.failure)).decode()) from None
            raise

    def _new_plan(self) -> Plan:
        """Inspect the reviews, and write a plan in a new work folder."""
        options = self.options
        on_cluster, output = options.runner in _CLUSTERS, options.output_dir
        try:
            settings = read_settings(options, tuple(map(class_name, options.classes or ())), options.preset)
            inputs = read_inputs({**vars(options), "input": options.args}, settings)
        except DataError as error:
            self.arg_parser.error(str(error))
        if on_cluster != is_s3(output or "") or (self.needs_output and not output):
            self.arg_parser.error(f"give --output-dir, {'an s3://... address' if on_cluster else 'a folder'}")
        if on_cluster and (local := [each for each in inputs.addresses if not is_s3(each)]):
            raise DataError(f"the tasks of a cluster cannot read {local[0]}; copy it to S3, and give its address")
        if output and not on_cluster:
            options.output_dir = output = str(Path(output).resolve())
        prepared = prepare_work(inputs, settings, max_malformed=options.max_malformed, leave_out=output)
        for warning in prepared.warnings:
            logging.getLogger("mrjob").warning(warning)
        return prepared.write_plan(
            work=self._new_work(output, on_cluster=on_cluster),
            output=output or "",
            tasks=max(1, prepared.plain_bytes // _TASK_BYTES),
        )

    def _new_work(self, output: str | None, *, on_cluster: bool) -> str:
        """Return a new work folder, next to the output. It is removed when this job is no longer used."""
        kept = ExitStack()
        finalize(self, kept.close)
        if on_cluster:
            work = f"{str(output).rstrip('/')}-work-{uuid4().hex[:8]}"
            kept.callback(remove_files, f"{work}/")
            return work
        home = Path(self.options.local_tmp_dir or (Path(output).parent if output else gettempdir()))
        with explain_os_error(DataError, f"cannot write to {home}", "choose another --output-dir"):
            home.mkdir(parents=True, exist_ok=True)
            if output and Path(output).exists() and any(Path(output).iterdir()):
                raise DataError(f"{output} is not empty; give a new folder")
            return str(kept.enter_context(temporary_folder(".shoal-work-", home)))

    def read_reviews(self, _: None, task: bytes) -> Iterator[Record]:
        """Mapper: read the reviews of a task."""
        tally = Tally()
        for part, block in read_texts(read_task(task), self.plan, tally, self.report_bytes):
            yield part_name(part).encode(), block_of(block)
        yield from tally.records()

    def report_bytes(self, read: int) -> None:
        """Report that `read` more bytes of input are done, through a Hadoop counter on standard error."""
        self._unreported += read
        if self._unreported > _REPORT_BYTES:
            self.increment_counter(*COUNTER, self._unreported)
            self._unreported = 0


def run_as_script(job: type[ReviewsJob]) -> None:
    """Run a job or one of its tasks. For bad data or a full disk, exit with a sentence instead of a traceback."""
    try:
        job.run()
    except DataError as error:
        if work := os.environ.get(WORK_VARIABLE):  # this process is a task
            with suppress(DataError, OSError):  # of a full disk
                write_text(join(work, FAILURE_NAME), str(error))
        sys.exit(f"{FAILURE_PREFIX}{error}")
    except OSError as error:
        if not is_full_disk(error):
            raise
        sys.exit(f"{FAILURE_PREFIX}no space left on the device of the jobs' intermediate files; free some space")
    except KeyboardInterrupt:
        sys.exit(130)
