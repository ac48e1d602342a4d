#!/bin/bash
# Bootstrap action of every EMR node: install.sh CODE_ZIP WHEELS_ZIP REGION. The zip files are s3:// addresses. Nodes
# cannot connect to a package index, so the libraries are uploaded as wheels. All files are below NODE_ROOT, which is
# empty on a real node. On a real node, EMR runs this script as the user hadoop, who can use sudo.
set -euo pipefail

code=$1
wheels=$2
region=$3
root=${NODE_ROOT:-}
home=$root/opt/shoal
as_root=sudo
[ -z "$root" ] || as_root=
# Set the region, because a node has no configured region and can access S3 only in its own region.
export AWS_REGION=$region AWS_DEFAULT_REGION=$region

fail() {
    echo "$1" >&2
    exit 1
}
# EMR runs bootstrap actions before it installs applications, and an application may bring this Python.
# (Management guide, "Create bootstrap actions to install additional software", read on 2026-11-30)
command -v python3.11 >/dev/null ||
    { [ -z "$root" ] && sudo dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux python3.11; } ||
    fail "this image has no python3.11, and dnf cannot install it from Amazon Linux's repository in S3"

$as_root mkdir -p "$home" "$root/usr/local/bin"
[ -z "$root" ] && sudo chown "$(id -un)" "$home"
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT

fetch() {
    aws s3 cp --only-show-errors "$1" "$download/$2" && return
    # The message contains both clocks, because S3 has the same error message for unknown identities and for a clock
    # that is 15 minutes off.
    local s3_date
    s3_date=$(curl --silent --head --max-time 10 "https://s3.$region.amazonaws.com" | sed -n 's/^date: //Ip' | tr -d '\r')
    fail "this node cannot download $1; its clock: $(date --utc), S3's clock: ${s3_date:-unknown}"
}
fetch "$code" code.zip &
fetch "$wheels" wheels.zip
wait $!
python3.11 -m zipfile -e "$download/code.zip" "$home/code"
python3.11 -m zipfile -e "$download/wheels.zip" "$download/wheels"
# Use the uploaded pip, which runs from its wheel. Python's own pip would have to be installed first.
python3.11 -m venv --without-pip "$home/venv"
pip=("$download"/wheels/pip-*.whl)
PYTHONPATH=${pip[0]} "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-compile \
    --find-links "$download/wheels" -r "$download/wheels/requirements.txt"

# Quotes a value for the scripts that this script writes.
quoted() { printf %q "$1"; }
$as_root tee "$root/usr/local/bin/shoal-python" >/dev/null <<RUN
#!/bin/bash
export PYTHONPATH=$(quoted "$home/code")\${PYTHONPATH:+:\$PYTHONPATH}
export AWS_REGION=$(quoted "$region") AWS_DEFAULT_REGION=$(quoted "$region")
# numba's cache is code that other users run, so only the user who installed it can change it. A YARN container has a
# different user, and numba ignores a folder that it cannot write to. So a container uses a copy of the cache, which is
# deleted with the container.
export NUMBA_CACHE_DIR=$(quoted "$home/compiled")
[ -z "\${CONTAINER_ID:-}" ] || ! copy=\$(mktemp -d -p "\$PWD" compiled.XXXXXX) ||
    { cp -r $(quoted "$home/compiled/.") "\$copy" && export NUMBA_CACHE_DIR=\$copy; }
# Allow long waits for credentials, because many tasks start at once and the node's metadata service delays some of
# them.
export AWS_METADATA_SERVICE_TIMEOUT=5 AWS_METADATA_SERVICE_NUM_ATTEMPTS=5
# Temporary files must not be on the root volume, which is small. Hadoop Streaming sets TMPDIR. Other YARN containers
# use their working folder, which is deleted with the container.
temporary=$(quoted "$root/mnt/tmp")
[ -z "\${CONTAINER_ID:-}" ] || temporary=\$PWD
[ -n "\${TMPDIR:-}" ] || [ ! -w "\$temporary" ] || export TMPDIR=\$temporary
# EMR does not notice work outside YARN containers. Without a touch of this file, it would terminate the cluster as
# idle.
if [ -z "\${CONTAINER_ID:-}" ] && [ -d $(quoted "$root/emr/metricscollector") ]; then
    while kill -0 \$\$; do
        $as_root touch $(quoted "$root/emr/metricscollector/isbusy")
        sleep 30
    done </dev/null >/dev/null 2>&1 &
fi
exec $(quoted "$home/venv/bin/python") "\$@"
RUN
# Runs the command of a step so that the step can be cancelled. This script does no work itself, so it does not touch
# EMR's file.
$as_root tee "$root/usr/local/bin/shoal-step" >/dev/null <<STEP
#!/bin/bash
export PYTHONPATH=$(quoted "$home/code") AWS_REGION=$(quoted "$region") AWS_DEFAULT_REGION=$(quoted "$region")
exec $(quoted "$home/venv/bin/python") -P -m bootstrap.node.step "\$@"
STEP
$as_root cp "$home/code/bootstrap/emr/preprocess.sh" "$root/usr/local/bin/shoal-preprocess"
for name in shoal-python shoal-step shoal-preprocess; do
    $as_root chmod 755 "$root/usr/local/bin/$name"
    # The PATH of a YARN container can be shorter than the PATH of a login shell.
    [ -n "$root" ] || sudo ln -sf "/usr/local/bin/$name" "/usr/bin/$name"
done
# Compile once per node instead of once per task. The imports also write bytecode.
mkdir -p "$home/compiled"
"$root/usr/local/bin/shoal-python" -m jobs.warm_up
chmod -R u+rwX,go+rX,go-w "$home/compiled"
