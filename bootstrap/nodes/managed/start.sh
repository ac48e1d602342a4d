#!/bin/bash
# Starts a training in a container of SageMaker's with AWS's image: installs Shoal's code and libraries, which are input
# channels of the job, and hands over to the trainer. Of an image made by Shoal's Dockerfile that is done already.
# The base folder is SageMaker's, /opt/ml, or SAGEMAKER_BASE_DIR, as in AWS's own toolkit.
set -euo pipefail

base=${SAGEMAKER_BASE_DIR:-/opt/ml}
home=$base/shoal
mkdir -p "$base/output" "$home"
python=$(command -v python3 || command -v python)

fail() {
    # What this file holds becomes the job's failure reason.
    echo "$1" | tee "$base/output/failure" >&2
    exit 1
}

for name in code wheels; do
    "$python" -m zipfile -e "$base/input/data/$name"/*.zip "$home/$name" || fail "Shoal's $name cannot be unpacked"
done
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --upgrade \
    --find-links "$home/wheels" --target "$home/site" -r "$home/wheels/requirements.txt" ||
    fail "Shoal's libraries cannot be installed for this image's Python; the job's log has what pip says"
export PYTHONPATH=$home/code:$home/code/packages/balance:$home/site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -P -m trainer.managed
