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
instance=

report() {
    # Without an id a node still has its name, which is its address.
    tail -n 20 "$log" |
        "$python" -c 'import json, sys; print(json.dumps({"state": sys.argv[1], "log": sys.stdin.read()}))' "$1" |
        aws s3 cp --only-show-errors - "s3://$DATA_BUCKET/nodes/${instance:-$HOSTNAME}.json"
}
# On EXIT, as an unset variable is no ERR. The console gets the log only then: a `tee` in between could still hold the
# last line when that is to be reported.
trap '[ $? = 0 ] || report failed || true; cat "$log" >&3' EXIT
exec 3>&1 >>"$log" 2>&1

instance=$(ec2-metadata --instance-id | sed 's/.*: *//')
mkdir -p "$home" "$share" "$root/usr/local/bin"
if [ -n "$SHARE_ID" ]; then
    # The network leads to Amazon Linux's own repository (S3) and to no other that the image has.
    [ -n "$root" ] || command -v mount.efs >/dev/null ||
        dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux amazon-efs-utils
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
