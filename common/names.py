"""Names that the parts of Shoal share: tags and outputs of a stack, keys in buckets, and patterns of identifiers.

Roles permit writing below some of these prefixes only (infra/stage.py), and the guard in the account reads others, so a
deployment keeps its names until it is deployed again.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime

STACK_PREFIX = "Shoal-"

TAG_DEPLOYMENT = "shoal:deployment"
TAG_TOPOLOGY = "shoal:topology"
TAG_GROUP = "shoal:group"
TAG_OWNER = "shoal:owner"
TAG_GPUS = "shoal:gpus"
"""Tag of a node group: the number of GPUs in use per node."""
TAG_MARKET = "shoal:market"
"""Tag of a node group: `on-demand` or `spot`."""
TAG_START = "shoal:start"
"""Tag of a node group: whether its nodes start with `shoal train` (`train`) or with the stack (`deploy`)."""
TAG_ROLE = "shoal:role"
"""Tag of a node group: the role of its nodes, `train` (the default) or `read`."""
TAG_EFA = "shoal:efa"
"""Tag of a node group: `true` if its nodes have EFA interfaces."""
TAG_KEEP = "shoal:keep"
"""Tag of a bucket that outlives the stack: `true` (always), or `unfetched` (only while it contains runs that were not
fetched)."""
KEEP_UNFETCHED = "unfetched"
TAG_NODES = "shoal:nodes"
"""Tag of a subnet: `true` if node groups can start nodes in it."""

OUTPUT_RAW_BUCKET = "RawBucket"
OUTPUT_DATA_BUCKET = "DataBucket"
OUTPUT_LOG_BUCKET = "LogBucket"
OUTPUT_CLUSTER_ID = "ClusterId"
OUTPUT_SHARE_ID = "ShareId"
"""Stack output: ID of the EFS file system, or `nfs` if the first GPU node serves the share."""
OUTPUT_INPUTS = "Inputs"
"""Stack output: addresses of the topology's inputs, separated by spaces. Absent without inputs."""
OUTPUT_ON_NODE = "PreprocessingNode"
"""Stack output: instance type of the node that also preprocesses. Absent without such a node."""
OUTPUT_MANAGED = "ManagedTraining"
"""Stack output: settings of all SageMaker training jobs, as JSON (infra/managed.py). Absent without managed
training."""
OUTPUT_MAX_DOLLARS = "MaxDollars"
"""Stack output: maximum cost of a run's nodes in dollars. Absent if the topology sets no limit."""
OUTPUT_GENERATION = "Generation"
OUTPUT_GUARD = "GuardFunction"

RAW = "reviews/"
"""Prefix in the raw bucket for uploaded reviews."""
EMR_LOGS = "emr/"
"""Prefix in the log bucket for EMR's logs. Below it, each cluster has a folder, named by the cluster ID."""

NODES = "nodes/"
"""Prefix in the data bucket for the documents of nodes: statuses, heartbeats, and the activity marker `.busy`."""
REQUESTS = "requests/"
"""Prefix in the data bucket for requests to the agents (bootstrap/node/documents.py). Nodes can only read requests,
because whoever can write a request can start any training run."""
RUNS = "runs/"
"""Prefix in the data bucket for runs. Below it, nodes can write only to names that start with their deployment's name
and a dot. The only other prefix that nodes can write to is `NODES`."""
FETCHED = "runs_fetched/"
"""Prefix in the data bucket for `RUN.json`, which maps each fetched object of a run to its ETag. Objects are deleted in
sorted order. This prefix sorts after `RUNS`, so a run's `RUN.json` is deleted after the run's objects."""
MODELS = "models/"
"""Prefix in the data bucket for the models that SageMaker jobs write, one copy per job."""
DATASETS = "datasets/"
WORK = "work/"
"""Prefix in the data bucket for the intermediate files of preprocessing, which expire."""

REQUEST_NAME = "request.json"
"""Name, in a run's folder, of the copy of its request."""
END_NAME = "ended.json"
"""Name, in a run's folder, of the document that states how the run ended."""
ATTEMPTS = "attempts/"
"""Folder, in a run's folder, of the run's attempts."""
SETS = "sets/"
"""Folder, in a run's folder, for files that the launching machine uploads: evaluation sets of word embeddings, and word
vectors from which a classifier starts."""
LOG = re.compile(r"(?P<program>(node|reader)-[0-9]{1,6})(-attempt-(?P<attempt>[0-9]{1,6}))?\.log")
"""Pattern of the names of log files in a run's folder."""
_ATTEMPT_DIGITS = 6

DEPLOYMENT = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
"""Pattern of the names of deployments and node groups. A name has at most DEPLOYMENT_LENGTH characters."""
DEPLOYMENT_LENGTH = 40  # CloudFormation appends logical IDs to the name, and the result must not exceed 63 characters
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")
INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
FINGERPRINT = re.compile(r"[0-9a-f]{12}")
"""Pattern of the name of a preprocessing run."""
TOKEN = re.compile(r"[0-9a-f]{8}")
"""Pattern of the identifier of a launch."""
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = re.compile(rf"{_BYTE}(\.{_BYTE}){{3}}")
"""Pattern of an IPv4 address."""
_RUN = re.compile(rf"(?=[^.]{{1,{DEPLOYMENT_LENGTH}}}\.){DEPLOYMENT.pattern}\.[0-9]{{8}}T[0-9]{{6}}-[0-9a-f]{{4}}")


def is_run(name: str) -> bool:
    """Return whether `name` is the name of a training run: deployment, start time, and four hexadecimal digits."""
    if _RUN.fullmatch(name):
        with suppress(ValueError):
            return bool(start_time(name))
    return False


def start_time(run: str) -> datetime:
    """Return the start time of a run from its name. Raises ValueError if the name contains no valid time."""
    return datetime.strptime(run.rpartition(".")[2].partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def step_name(run: str, name: str) -> str:
    """Return the name under which EMR lists a step. If the step is a job, YARN lists the job's application under the
    same name."""
    return f"shoal {run}: {name}"


def request_key(deployment: str) -> str:
    return f"{REQUESTS}{deployment}.json"


def request_copy_key(run: str) -> str:
    """Return the key of the copy of a request in the run's folder."""
    return f"{RUNS}{run}/{REQUEST_NAME}"


def end_key(run: str) -> str:
    return f"{RUNS}{run}/{END_NAME}"


def attempts_prefix(run: str) -> str:
    return f"{RUNS}{run}/{ATTEMPTS}"


def attempt_key(run: str, number: int) -> str:
    """Return the key of an attempt. Keys sort in the order of the attempts' numbers."""
    return f"{attempts_prefix(run)}{number:0{_ATTEMPT_DIGITS}}.json"


def attempt_number(key: str) -> int:
    """Return the number of the attempt with this key, or 0 if the key does not belong to an attempt."""
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() and len(name) == _ATTEMPT_DIGITS else 0


def log_name(program: str, attempt: int) -> str:
    """Return the file name of a program's log in an attempt. `program` is `node-K` or `reader-K`.

    Each attempt has its own log, because the next attempt might run the program on a node that does not have the
    earlier log.
    """
    return f"{program}.log" if attempt == 1 else f"{program}-attempt-{attempt}.log"


def heartbeat_key(instance: str) -> str:
    """Return the key of a node's heartbeat, an object that changes every few seconds while the node takes part in a
    run."""
    return f"{NODES}{instance}.beat"


def status_key(instance: str) -> str:
    return f"{NODES}{instance}.run"


def extension_parameter(deployment: str) -> str:
    """Return the name of the SSM parameter that stores the hours added to the deployment's life."""
    return f"/shoal/{deployment}/extension"


def guard_parameter(deployment: str) -> str:
    """Return the name of the SSM parameter in which the guard stores the dollars spent and the warnings sent."""
    return f"/shoal/{deployment}/guard"
