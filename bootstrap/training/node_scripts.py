"""The shell scripts that the nodes of a training run execute: bring its data, train, read, stop.

The share holds what the ranks have in common; without a share each node uses a folder of its own. Only EFS outlives the
nodes, so on others a run's checkpoints are copied to S3 while it runs. A node with disks of its own has the dataset
there. Do not let the shell wait for `sleep` in the foreground, because it would handle a signal only afterwards. Put no
name into a script that was not checked (`names`) and quoted.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bootstrap.aws import names
from bootstrap.nodes.fleet import GpuNode
from corpus.reading.s3 import Place
from corpus.stream.settings import SETTINGS_NAME
from corpus.text_request import REQUEST_NAME
from infra import topology
from trainer.command_line import as_arguments
from trainer.config import NEEDS_GPU, RANK_ENVIRONMENT, TrainConfig
from trainer.distributed import failures
from trainer.output.files import STREAM as STREAM_START
from trainer.rank_processes import LIMITS, STOP_SECONDS

_RECORD_SECONDS = 5
_READER_RESTARTS = 3
"""How often a reader is started again that died within `_STEADY_SECONDS` of its start each time."""
_STEADY_SECONDS = 60
# Files that are on their way, and whatever is hidden.
_UNWANTED = ("*.partial", ".*", "*/.*")

# Placeholders in the trainer's arguments for paths that only a node's shell knows.
_DATA, _OUTPUT, _CACHE = Path("@data@"), Path("@output@"), Path("@cache@")
STREAM = "@stream@"
"""The same in a reader's arguments, for the folder on the share in which readers leave what trainers take."""

# bootstrap/nodes/gpu/boot.sh makes /mnt/local where a node has disks of its own.
_HEAD = """\
export PATH="${{NODE_ROOT:-}}/usr/local/bin:$PATH" AWS_DEFAULT_REGION={region}
place="${{NODE_ROOT:-}}/mnt/share" cache="${{NODE_ROOT:-}}/var/cache/shoal"
[ -d "${{NODE_ROOT:-}}/mnt/local" ] && place="${{NODE_ROOT:-}}/mnt/local" cache="${{NODE_ROOT:-}}/mnt/local/rows"
stream="${{NODE_ROOT:-}}"/mnt/share/streams/{name}
data={data}
shared={shared}
run="${{NODE_ROOT:-}}"/mnt/share/runs/{name}
"""

# While the lock is held, the node's heartbeat reports work, and the guard does not end the node.
_STAGE = """\
set -euo pipefail
exec 9<"${{NODE_ROOT:-}}/opt/shoal/busy.lock"
flock -s 9
mkdir -p "$(dirname "$data")" "$run"
install -d -m 700 "$cache"
exec 8>"$run.lock"
flock 8
rm -f "$run"/.stop-*
aws s3 sync --only-show-errors {folder}checkpoints "$run/checkpoints"
[ -e "$run/record.jsonl" ] || aws s3 sync --only-show-errors --exclude '*' --include record.jsonl \\
    --include {start} {folder} "$run"
"""

# The share may be another one than that on which a run was stopped: then its stream goes on from the checkpoint.
_OPEN_STREAM = """\
mkdir -p "$stream"
[ -e "$stream"/{name} ] || {{
    aws s3 cp --only-show-errors {settings} "$stream/.settings.$$"
    mv "$stream/.settings.$$" "$stream"/{name}
}}
[ ! -d "$run/checkpoints" ] || shoal-python -m trainer.embeddings.stream_place "$run" "$stream"
"""

# Of the nodes that share a folder the first one copies the dataset there, and the others wait for it.
_COPY = """\
exec 8>"$data.lock"
flock 8
[ -e "$data" ] && exit 0
aws s3 cp --only-show-errors {dataset} "$data.$$.partial"
mv "$data.$$.partial" "$data"
"""

# Of the nodes that share a folder the first one encodes the texts, on its own disks if it has some, and copies the
# dataset to the share. A node with disks of its own copies it from there. While a node encodes texts it holds their
# lock: what lies there of texts whose lock is free was left by a killed command.
_ENCODE = """\
bring() {{ [ -e "$2" ] || {{ cp "$1" "$2.$$.partial" && mv "$2.$$.partial" "$2"; }}; }}
mkdir -p "$(dirname "$shared")"
for left in "$place"/datasets/texts-*.parts; do
    [ ! -d "$left" ] || flock -n "$(dirname "$shared")/$(basename "$left" .parts).lock" rm -rf "$left" || true
done
exec 8>"$shared.lock"
flock 8
if [ ! -e "$data" ] && [ ! -e "$shared" ]; then
    rm -rf "$data.parts"
    mkdir "$data.parts"
    shoal-python -m corpus.text_request {request} "$data.parts/dataset.h5" {progress}
    mv "$data.parts/dataset.h5" "$data"
    rmdir "$data.parts"
fi
bring "$data" "$shared"
flock -u 8
bring "$shared" "$data"
"""

# Without this a rank that finds no GPU would compute on the CPU, at a GPU's price. An emulated node has no GPU.
_TRAIN = """\
set -uo pipefail
{environment}
[ -n "${{NODE_ROOT:-}}" ] || export {needs_gpu}=1
log="$run/node-{rank}.log"
bring() {{ nice -n 19 aws s3 sync --only-show-errors {unwanted} "$@" "$run" {folder}; }}
shoal-python -m trainer.launch --nnodes={nodes} --node-rank={rank} --nproc-per-node={gpus} \\
    {master} --master-port={port} {limits} \\
    -m trainer {arguments} >"$log" 2>&1 &
training=$!
trap 'kill -TERM $training' TERM INT
while kill -0 $training 2>/dev/null; do
    [ -e "$run/.stop-{rank}" ] && rm -f "$run/.stop-{rank}" && kill -TERM $training
    {follow}
    for second in {seconds}; do
        [ -e "$run/.stop-{rank}" ] || ! kill -0 $training 2>/dev/null || {{ sleep 1 & wait $!; }}
    done
done
wait $training
status=$?
{finish}
exit $status
"""

_STOP = """\
touch "$run/.stop-{rank}"
"""

# A reader that dies is started again, but not for ever: one that fails whenever it starts would read nothing. A stopped
# one has succeeded. Readers also end with the ranks, because a stream may have no end, and the guard takes a node that
# reads for one at work.
_READ = """\
set -uo pipefail
log="$run/reader-{reader}.log" stop="$run/.stop-reader-{reader}-{token}"
mkdir -p "$run" "$stream"
rm -f "$run/.ranks-ended"
stopped() {{ [ -e "$stop" ] || [ -e "$run/.ranks-ended" ]; }}
tell() {{
    cp "$stream/reader-{reader}/status.json" "$run/.reader-{reader}" &&
        mv "$run/.reader-{reader}" "$run/reader-{reader}.json"
}} 2>/dev/null
failures=0
while :; do
    started=$SECONDS
    shoal-python {arguments} >>"$log" 2>&1 &
    reading=$!
    while kill -0 $reading 2>/dev/null && ! stopped; do sleep 1 && tell; done
    if stopped; then
        kill -TERM $reading 2>/dev/null
        for second in {seconds}; do ! kill -0 $reading 2>/dev/null || sleep 1; done
        kill -KILL $reading 2>/dev/null
    fi
    wait $reading
    status=$?
    tell
    ! stopped || status=0
    [ $status != 0 ] || break
    [ $((SECONDS - started)) -lt {steady} ] || failures=0
    failures=$((failures + 1))
    [ $failures -le {restarts} ] || break
    echo "reader {reader} ended with status $status, and is started again" >>"$log"
done
last=$(tail -n 1 "$log")
aws s3 sync --only-show-errors --exclude '*' --include 'reader-{reader}.*' "$run" {folder}
[ $status = 0 ] || echo "$last" >&2
exit $status
"""

_STOP_READING = """\
touch "$run/.stop-reader-{reader}-{token}"
"""

# What was read for a run that finished is of no more use; a stopped one goes on with it.
_FORGET = """\
! grep -q '"stopped": false' "$run/summary.json" || rm -rf "$stream"
"""

# Nobody needs the checkpoints of a finished run.
_FINISH = """\
touch "$run/.ranks-ended"
if grep -q '"stopped": false' "$run/summary.json" 2>/dev/null; then
    bring --exclude 'checkpoints/*'
    aws s3 rm --recursive --only-show-errors {folder}checkpoints/
else
    bring
fi"""


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A training run in the data bucket. Raises ShoalError for names that Shoal does not write."""

    name: str
    dataset: Place | str | None
    """A dataset in S3, or the name of that of the texts in the run's request, which the nodes encode; None for what
    readers leave in the stream's folder."""
    bucket: str
    """The data bucket, to which its results are copied."""
    region: str
    share: Literal["efs", "nfs"] | None
    """What serves the folder that all nodes share; None where each has its own."""

    def __post_init__(self) -> None:
        names.run(self.name)
        if isinstance(self.dataset, Place):
            names.dataset(self.dataset.key)
            names.bucket(self.dataset.bucket)
        elif self.dataset is not None:
            names.work(self.dataset)
        names.bucket(self.bucket)
        names.region(self.region)

    @property
    def folder(self) -> Place:
        """The folder to which its results are copied."""
        return Place(self.bucket, f"{topology.RUNS_PREFIX}{self.name}/")

    @property
    def request(self) -> Place:
        """Where it is written which texts the nodes encode."""
        return Place(self.bucket, self.folder.key + REQUEST_NAME)

    @property
    def settings(self) -> Place:
        """Where it is written which text readers read, and how."""
        return Place(self.bucket, self.folder.key + SETTINGS_NAME)

    def progress(self, node: GpuNode) -> Place:
        """Where a node reports what it has read of the texts."""
        return Place(self.bucket, f"{topology.NODES_PREFIX}{node.instance_id}.texts")

    @property
    def file(self) -> str:
        """The name of the dataset's file on a node, or of the stream's folder."""
        if self.dataset is None:
            return f"streams/{self.name}"
        return self.dataset.key.replace("/", "-") if isinstance(self.dataset, Place) else f"texts-{self.dataset}.h5"

    def stage(self, node: GpuNode) -> str:
        """Copy the dataset to the node, encode the texts there, or prepare the stream's folder; and bring a resumed
        run's checkpoints and record.

        Every node runs this script. Nodes that share a folder may run it at once, but not together with the node that
        serves the folder by NFS, because that node does not see their locks.
        """
        if isinstance(self.dataset, Place):
            brought = _COPY.format(dataset=shlex.quote(str(self.dataset)))
        elif self.dataset is None:
            brought = _OPEN_STREAM.format(name=SETTINGS_NAME, settings=shlex.quote(str(self.settings)))
        else:
            request, progress = (shlex.quote(str(place)) for place in (self.request, self.progress(node)))
            brought = _ENCODE.format(request=request, progress=progress)
        return self._head() + _STAGE.format(folder=shlex.quote(str(self.folder)), start=STREAM_START) + brought

    def train(self, nodes: Sequence[GpuNode], rank: int, port: int, config: TrainConfig) -> str:
        """Run the ranks of one node; that of the first node also copies all results to S3, again and again."""
        # Nobody else is in the network of the nodes, because their security group lets nobody in.
        own = replace(config, data=_DATA, output=_OUTPUT, cache=config.cache or _CACHE, trust_network=True)
        arguments = as_arguments(own)
        shell = {str(_DATA): '"$data"', str(_OUTPUT): '"$run"', str(_CACHE): '"$cache"'}
        folder = shlex.quote(str(self.folder))
        environment = {**RANK_ENVIRONMENT, failures.NODE: nodes[rank].instance_id}
        follow = "bring --exclude 'checkpoints/*'" if self.share == "efs" else "bring"
        return self._head() + _TRAIN.format(
            environment="\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
            needs_gpu=NEEDS_GPU,
            unwanted=shlex.join(f"--exclude={pattern}" for pattern in _UNWANTED),
            rank=rank,
            nodes=len(nodes),
            gpus=nodes[rank].gpus,
            master=shlex.quote(f"--master-addr={nodes[0].address}"),
            port=port,
            limits=" ".join(LIMITS),
            arguments=" ".join(shell.get(argument) or shlex.quote(argument) for argument in arguments),
            folder=folder,
            follow=follow if rank == 0 else ":",
            finish=_FINISH.format(folder=folder) if rank == 0 else f'aws s3 cp --only-show-errors "$log" {folder}',
            seconds=" ".join(map(str, range(_RECORD_SECONDS))),
        )

    def stop(self, rank: int) -> str:
        """Ask the ranks of one node to stop with a checkpoint; it works also while they are still starting."""
        return self._head() + _STOP.format(rank=rank)

    def read(self, reader: int, arguments: Sequence[str], token: str) -> str:
        """Run a reader on its node until it has read all, is stopped, or died too often at once.

        `arguments` follow the name of Python, and `STREAM` among them is the stream's folder. `token` is of hexadecimal
        digits, and different whenever readers are started, so that no earlier request stops them.
        """
        return self._head() + _READ.format(
            reader=reader,
            token=token,
            arguments=" ".join('"$stream"' if each == STREAM else shlex.quote(each) for each in arguments),
            folder=shlex.quote(str(self.folder)),
            seconds=" ".join(map(str, range(STOP_SECONDS))),
            steady=_STEADY_SECONDS,
            restarts=_READER_RESTARTS,
        )

    def stop_reading(self, reader: int, token: str) -> str:
        """Ask a reader to stop; it works also while it is still starting."""
        return self._head() + _STOP_READING.format(reader=reader, token=token)

    def forget_stream(self) -> str:
        """Remove what readers left for a run that finished; they must have ended."""
        return self._head() + _FORGET

    def _head(self) -> str:
        file = shlex.quote(self.file)
        is_dataset = self.dataset is not None
        return _HEAD.format(
            region=shlex.quote(self.region),
            data=f'"$place"/datasets/{file}' if is_dataset else '"$stream"',
            shared=f'"${{NODE_ROOT:-}}"/mnt/share/datasets/{file}' if self.share and is_dataset else '"$data"',
            name=shlex.quote(self.name),
        )
