#!/bin/bash
# Starts a training run in a SageMaker container with AWS's image: installs Shoal's code and libraries, which are input
# channels of the job, and starts the trainer. An image from Shoal's Dockerfile already contains code and libraries. The
# base folder is SageMaker's /opt/ml, or SAGEMAKER_BASE_DIR, as in AWS's SageMaker toolkit.
set -euo pipefail

base=${SAGEMAKER_BASE_DIR:-/opt/ml}
home=$base/shoal
mkdir -p "$base/output" "$home"
python=$(command -v python3 || command -v python)

fail() {
    # SageMaker reports the content of this file as the failure reason of the job.
    echo "$1" | tee "$base/output/failure" >&2
    exit 1
}

for name in code wheels; do
    "$python" -m zipfile -e "$base/input/data/$name"/*.zip "$home/$name" || fail "Python cannot unpack Shoal's $name"
done
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --upgrade \
    --find-links "$home/wheels" --target "$home/site" -r "$home/wheels/requirements.txt" ||
    fail "pip cannot install Shoal's libraries for this image's Python; see its output in the job's log"
export PYTHONPATH=$home/code:$home/code/packages/balance:$home/site${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -P -m trainer.managed
