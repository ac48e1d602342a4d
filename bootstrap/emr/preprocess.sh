#!/bin/bash
# Makes a dataset of reviews with all nodes of this cluster. To run on the primary node, where install.sh installs this
# script as the command shoal-preprocess:
#
#   shoal-preprocess INPUT OUTPUT [OPTIONS]
#
# INPUT: s3:// address of the reviews: an object, a prefix, or a pattern in quotes. OUTPUT: s3:// folder that does not
# exist; the dataset will be OUTPUT/DIGEST/dataset.h5. OPTIONS: those of `shoal-python -m jobs.dataset --help`.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '/^# /,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
input=$1
output=$2
shift 2
exec shoal-python -m jobs.dataset --runner hadoop --output-dir "$output" "$@" "$input"
