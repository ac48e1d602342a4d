#!/bin/bash
# First boot of a GPU node or a reader: mount the share, install Shoal's code, check the GPUs of a node that has any,
# start the agent (bootstrap/agent), which does the rest, and report `ready`, or `failed` with the end of the log.
# Reads DEPLOYMENT, DATA_BUCKET, SHARE_KIND (efs, nfs, none), SHARE_ID (of EFS), CODE_URL, WHEELS_URL, GPUS (number of
# GPUs of the instance type) and RANKS (number of GPUs that train) from the environment.
# All files are below NODE_ROOT, which is empty on a real node. An emulated node has no GPU.
set -euo pipefail

root=${NODE_ROOT:-}
home=$root/opt/shoal
share=$root/mnt/share
log=$root/var/log/shoal-boot.log
python=$root/opt/pytorch/bin/python
instance=

report() {
    local reader=$python
    [ -x "$reader" ] || reader=python3 # the Python of the system
    # Until the instance's id is known, the report has the name of the host, which contains its address.
    tail -n 20 "$log" |
        "$reader" -c 'import json, platform, sys; print(json.dumps({"state": sys.argv[1],
            "python": platform.python_version(), "log": sys.stdin.read()}))' "$1" |
        aws s3 cp --only-show-errors - "s3://$DATA_BUCKET/nodes/${instance:-$HOSTNAME}.json"
}
# On EXIT, because an unset variable does not trigger ERR. The log is copied to the console only then: a `tee` might
# still hold the last line when the log is reported.
trap '[ $? = 0 ] || report failed || true; cat "$log" >&3' EXIT
exec 3>&1 >>"$log" 2>&1
fail() {
    # `shoal train` shows the last line of the log.
    echo "$1" >&2
    exit 1
}

instance=$(ec2-metadata --instance-id | sed 's/.*: *//')
address=$(ec2-metadata --local-ipv4 | sed 's/.*: *//')
[ -x "$python" ] || fail "this image has no $python; use an image with PyTorch"
mkdir -p "$home" "$share" "$root/usr/local/bin"
need() {
    # Nodes can reach only one of the image's repositories: Amazon Linux's own, which is in S3.
    [ -n "$root" ] || command -v "$1" >/dev/null ||
        dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux "$2" ||
        fail "this image has no $1, and dnf cannot install $2 from Amazon Linux's repository in S3"
}
case $SHARE_KIND in
efs)
    need mount.efs amazon-efs-utils
    mount -t efs -o tls,iam "$SHARE_ID:/" "$share"
    ;;
nfs) need exportfs nfs-utils ;; # the attempt of a run determines the node that serves
none) ;;
*) fail "SHARE_KIND is '$SHARE_KIND', but must be efs, nfs or none" ;;
esac

# Mounts the instance's own disks at /mnt/local. A service of the image makes one volume of them; otherwise this
# function does it, with blank disks only. Without such disks there is no /mnt/local.
own_disks() {
    local own=$root/mnt/local image=$root/opt/dlami/nvme disk disks blank=()
    systemctl start dlami-nvme.service || true # if it is already running, this waits until it has ended
    if mountpoint -q "$image"; then
        mkdir -p "$image/shoal" && ln -sfn "$image/shoal" "$own"
        return
    fi
    mapfile -t disks < <(readlink -e "$root"/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_* | sort -u)
    for disk in "${disks[@]}"; do
        # A partition, or a disk with partitions or a file system, is not blank. blkid returns 2 for a blank disk, but
        # also for one that it cannot read, so `head` reads it first.
        [ "$(lsblk --noheadings --raw --output TYPE "$disk")" = disk ] || continue
        head -c 4096 "$disk" >/dev/null || continue
        blkid --probe "$disk" || [ $? != 2 ] || blank+=("$disk")
    done
    [ ${#blank[@]} -gt 0 ] || return 0
    disk=${blank[0]}
    if [ ${#blank[@]} -gt 1 ] && command -v mdadm >/dev/null; then
        disk=$root/dev/md/shoal
        mdadm --create "$disk" --level=0 --raid-devices=${#blank[@]} --run "${blank[@]}" || return
    fi
    mkfs.xfs -q "$disk" && mkdir -p "$own" || return
    mount -o noatime "$disk" "$own" || { rmdir "$own" && return 1; }
}
own_disks || echo "this node cannot use its own disks and uses its root volume instead" >&2

aws s3 cp --only-show-errors "$CODE_URL" "$home/code.zip" &
aws s3 cp --only-show-errors "$WHEELS_URL" "$home/wheels.zip"
wait $!
"$python" -m zipfile -e "$home/code.zip" "$home/code"
"$python" -m zipfile -e "$home/wheels.zip" "$home/wheels"
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --upgrade \
    --find-links "$home/wheels" --target "$home/site" -r "$home/wheels/requirements.txt" ||
    fail "pip cannot install the deployment's libraries for this image's Python; see its output above"

# Quotes a value for the scripts that are written below.
quoted() { printf %q "$1"; }
cat >"$root/usr/local/bin/shoal-python" <<RUN
#!/bin/bash
export PYTHONPATH=$(quoted "$home/code:$home/code/packages/balance:$home/site")
exec $(quoted "$python") "\$@"
RUN
cat >"$root/usr/local/bin/shoal-agent" <<RUN
#!/bin/bash
export DEPLOYMENT=$(quoted "$DEPLOYMENT") DATA_BUCKET=$(quoted "$DATA_BUCKET") INSTANCE_ID=$(quoted "$instance")
export ADDRESS=$(quoted "$address") RANKS=$(quoted "$RANKS")
export AWS_DEFAULT_REGION=$(quoted "$AWS_DEFAULT_REGION") PATH=$(quoted "$root/usr/local/bin"):\$PATH
exec $(quoted "$root/usr/local/bin/shoal-python") -m bootstrap.agent
RUN
chmod 755 "$root/usr/local/bin/shoal-python" "$root/usr/local/bin/shoal-agent"
"$root/usr/local/bin/shoal-python" -c 'import trainer.start'
# Without a working driver the node would train on its CPU, at the price of its GPUs.
[ -n "${NODE_ROOT:-}" ] || [ "$GPUS" = 0 ] || "$root/usr/local/bin/shoal-python" -m trainer.devices "$GPUS"
# Programs of the agent continue while it restarts (KillMode). One that is killed for memory does not end it (OOMPolicy).
mkdir -p "$root/etc/systemd/system"
# During a shutdown the agent still has the network (After), to stop its ranks with a checkpoint and report that.
cat >"$root/etc/systemd/system/shoal-agent.service" <<UNIT
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
ExecStart="$root/usr/local/bin/shoal-agent"
StandardOutput=append:$root/var/log/shoal-agent.log
StandardError=append:$root/var/log/shoal-agent.log
Restart=always
RestartSec=2
KillMode=process
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now shoal-agent.service
report ready
