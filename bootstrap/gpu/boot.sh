#!/bin/bash
# First boot of a GPU node: mount the share, install Shoal's code, and report `ready`, or `failed` with the log's end.
# Takes DATA_BUCKET, SHARE_ID, CODE_URL and WHEELS_URL from the environment. Everything is written below NODE_ROOT,
# which is empty on a real node.
set -euo pipefail

root=${NODE_ROOT:-}
home=$root/opt/shoal
share=$root/mnt/share
log=$root/var/log/shoal-boot.log
python=$root/opt/pytorch/bin/python
instance=$(ec2-metadata --instance-id | sed 's/.*: *//')
mkdir -p "$home" "$share" "$root/usr/local/bin" "$(dirname "$log")"
exec > >(tee -a "$log") 2>&1

report() {
    tail -n 20 "$log" |
        "$python" -c 'import json, sys; print(json.dumps({"state": sys.argv[1], "log": sys.stdin.read()}))' "$1" |
        aws s3 cp --only-show-errors - "s3://$DATA_BUCKET/nodes/$instance.json"
}
trap 'report failed' ERR

if [ -n "$SHARE_ID" ]; then
    [ -n "$root" ] || command -v mount.efs >/dev/null || dnf install --quiet --assumeyes amazon-efs-utils
    mount -t efs -o tls,iam "$SHARE_ID:/" "$share"
fi
aws s3 cp --only-show-errors "$CODE_URL" "$home/code.zip"
aws s3 cp --only-show-errors "$WHEELS_URL" "$home/wheels.zip"
"$python" -m zipfile -e "$home/code.zip" "$home/code"
"$python" -m zipfile -e "$home/wheels.zip" "$home/wheels"
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --upgrade \
    --find-links "$home/wheels" --target "$home/site" -r "$home/wheels/requirements.txt"

cat >"$root/usr/local/bin/shoal-python" <<RUN
#!/bin/bash
export PYTHONPATH=$home/code:$home/site
exec $python "\$@"
RUN
chmod 755 "$root/usr/local/bin/shoal-python"
"$root/usr/local/bin/shoal-python" -c 'import trainer.loop'
report ready
