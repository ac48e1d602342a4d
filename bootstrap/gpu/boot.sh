#!/bin/bash
# First boot of a GPU node or a reader: mounts the share, installs Shoal's code, checks the GPUs, and starts the agent
# (bootstrap/node), which does everything else. Reports `ready`, or `failed` with the end of the log. Reads the
# environment variables DEPLOYMENT, DATA_BUCKET, SHARE_KIND (efs, nfs or none), SHARE_ID (of EFS), CODE_URL, WHEELS_URL,
# GPUS (number of GPUs of the instance type) and RANKS (number of GPUs that train). All files are below NODE_ROOT, which
# is empty on a real node. An emulated node has no GPU.
set -euo pipefail

root=${NODE_ROOT:-}
home=$root/opt/shoal
share=$root/mnt/share
log=$root/var/log/shoal-boot.log
python=$root/opt/pytorch/bin/python
instance=

report() {
    local reader=$python
    [ -x "$reader" ] || reader=python3 # the system's Python
    # Until the instance ID is known, the name of the report is the host name, which contains the node's IP address.
    tail -n 20 "$log" |
        "$reader" -c 'import json, platform, sys; print(json.dumps({"state": sys.argv[1],
            "python": platform.python_version(), "log": sys.stdin.read()}))' "$1" |
        aws s3 cp --only-show-errors - "s3://$DATA_BUCKET/nodes/${instance:-$HOSTNAME}.json"
}
# The trap is on EXIT, because an unset variable does not trigger ERR. The log is copied to the console only on exit.
# With `tee` instead, the last line might not yet be in the log when the log is reported.
trap '[ $? = 0 ] || report failed || true; cat "$log" >&3' EXIT
exec 3>&1 >>"$log" 2>&1
fail() {
    # This message must be the last line of the log, because `shoal train` shows this line.
    echo "$1" >&2
    exit 1
}

need() {
    # Nodes can access only one package repository of the image: the one of Amazon Linux, which is in S3.
    [ -n "$root" ] || command -v "$1" >/dev/null ||
        dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux "$2" ||
        fail "this image has no $1, and dnf cannot install $2 from Amazon Linux's repository in S3"
}
need ec2-metadata amazon-ec2-utils
instance=$(ec2-metadata --instance-id | sed 's/.*: *//')
address=$(ec2-metadata --local-ipv4 | sed 's/.*: *//')
[ -x "$python" ] || fail "this image has no $python; use an image with PyTorch"
mkdir -p "$home" "$share" "$root/usr/local/bin"
case $SHARE_KIND in
efs)
    need mount.efs amazon-efs-utils
    mount -t efs -o tls,iam "$SHARE_ID:/" "$share"
    ;;
nfs) need exportfs nfs-utils ;; # each attempt of a run determines the node that serves the share
none) ;;
*) fail "SHARE_KIND is '$SHARE_KIND', but must be efs, nfs or none" ;;
esac

# Mounts the instance's NVMe disks at /mnt/local. If a service of the image combined the disks into one volume, uses
# this volume. Otherwise this function combines the disks that are blank. Without blank disks, /mnt/local does not
# exist.
own_disks() {
    local own=$root/mnt/local image=$root/opt/dlami/nvme disk disks blank=()
    # If the service is already running, this waits until it is done. An image without it is no failure.
    systemctl start dlami-nvme.service 2>/dev/null || true
    if mountpoint -q "$image"; then
        mkdir -p "$image/shoal" && ln -sfn "$image/shoal" "$own"
        return
    fi
    mapfile -t disks < <(readlink -e "$root"/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_* | sort -u)
    for disk in "${disks[@]}"; do
        # A partition, or a disk with partitions or a file system, is not blank. blkid returns 2 for a blank disk, but
        # also for a disk that it cannot read. So `head` reads the disk first.
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

# Quotes a value for the scripts that this script writes.
quoted() { printf %q "$1"; }
cat >"$root/usr/local/bin/shoal-python" <<RUN
#!/bin/bash
export PYTHONPATH=$(quoted "$home/code:$home/code/packages/balance:$home/site")
exec $(quoted "$python") "\$@"
RUN
write_command() {
    cat >"$root/usr/local/bin/$1" <<RUN
#!/bin/bash
export DEPLOYMENT=$(quoted "$DEPLOYMENT") DATA_BUCKET=$(quoted "$DATA_BUCKET") INSTANCE_ID=$(quoted "$instance")
export ADDRESS=$(quoted "$address") RANKS=$(quoted "$RANKS")
export AWS_DEFAULT_REGION=$(quoted "$AWS_DEFAULT_REGION") PATH=$(quoted "$root/usr/local/bin"):\$PATH
exec $2
RUN
}
write_command shoal-agent "$(quoted "$root/usr/local/bin/shoal-python") -m bootstrap.node"
write_command shoal-train "bash $(quoted "$home/code/bootstrap/gpu/train.sh") \"\$@\""
chmod 755 "$root"/usr/local/bin/shoal-{python,agent,train}
"$root/usr/local/bin/shoal-python" -c 'import trainer.start'
# Check the driver: without a working driver, the node would train on its CPU at the price of its GPUs.
[ -n "${NODE_ROOT:-}" ] || [ "$GPUS" = 0 ] || "$root/usr/local/bin/shoal-python" -m trainer.devices "$GPUS"
# Programs that the agent started continue while the agent restarts (KillMode). If the kernel kills one of them for lack
# of memory, the agent continues (OOMPolicy).
mkdir -p "$root/etc/systemd/system"
# During a shutdown, the network is still up while the agent stops its ranks with a checkpoint and reports this (After).
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
