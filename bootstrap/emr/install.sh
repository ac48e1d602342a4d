#!/bin/bash
# Bootstrap action of every EMR node: install.sh CODE_ZIP WHEELS_ZIP REGION (the first two s3://...).
# The nodes reach no package index, so the libraries come along as wheels. Everything is written below NODE_ROOT,
# which is empty on a real node; there EMR runs this as the user hadoop, who may sudo.
set -euo pipefail

code=$1
wheels=$2
region=$3
root=${NODE_ROOT:-}
home=$root/opt/shoal
as_root=sudo
[ -z "$root" ] || as_root=

$as_root mkdir -p "$home" "$root/usr/local/bin"
[ -z "$root" ] && sudo chown "$(id -un)" "$home"
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT

aws s3 cp --only-show-errors "$code" "$download/code.zip"
aws s3 cp --only-show-errors "$wheels" "$download/wheels.zip"
python3.11 -m zipfile -e "$download/code.zip" "$home/code"
python3.11 -m zipfile -e "$download/wheels.zip" "$download/wheels"
python3.11 -m venv "$home/venv"
"$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-compile \
    --find-links "$download/wheels" -r "$download/wheels/requirements.txt"

$as_root tee "$root/usr/local/bin/shoal-python" >/dev/null <<RUN
#!/bin/bash
export PYTHONPATH=$home/code AWS_DEFAULT_REGION=$region
exec $home/venv/bin/python "\$@"
RUN
$as_root chmod 755 "$root/usr/local/bin/shoal-python"
# YARN's containers may have a shorter PATH than a login.
[ -n "$root" ] || sudo ln -sf /usr/local/bin/shoal-python /usr/bin/shoal-python
"$root/usr/local/bin/shoal-python" -c 'import jobs.encode, jobs.merge'
