#!/bin/bash
# First boot of a GPU node: mount the share, install Shoal's code, see that the GPUs compute, and report `ready`, or
# `failed` with the log's end. Afterwards a heartbeat says once a minute that the node works, as long as it does; who
# hears none for long may end it.
# Takes DATA_BUCKET, SHARE_KIND (efs, nfs, none), SHARE_ID (of efs), CODE_URL, WHEELS_URL and GPUS (how many its type
# has) from the environment.
# Everything is written below NODE_ROOT, which is empty on a real node; a played one has no GPU.
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
        "$python" -c 'import json, platform, sys; print(json.dumps({"state": sys.argv[1],
            "python": platform.python_version(), "log": sys.stdin.read()}))' "$1" |
        aws s3 cp --only-show-errors - "s3://$DATA_BUCKET/nodes/${instance:-$HOSTNAME}.json"
}
# On EXIT, as an unset variable is no ERR. The console gets the log only then: a `tee` in between could still hold the
# last line when that is to be reported.
trap '[ $? = 0 ] || report failed || true; cat "$log" >&3' EXIT
exec 3>&1 >>"$log" 2>&1

instance=$(ec2-metadata --instance-id | sed 's/.*: *//')
mkdir -p "$home" "$share" "$root/usr/local/bin"
need() {
    # The network leads to Amazon Linux's own repository (S3) and to no other that the image has.
    [ -n "$root" ] || command -v "$1" >/dev/null ||
        dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux "$2"
}
case $SHARE_KIND in
efs)
    need mount.efs amazon-efs-utils
    mount -t efs -o tls,iam "$SHARE_ID:/" "$share"
    ;;
nfs) need exportfs nfs-utils ;; # which node serves is known when all are there
none) ;;
*) echo "SHARE_KIND is '$SHARE_KIND', but must be efs, nfs or none" >&2 && exit 1 ;;
esac

# The disks that a type has itself, as /mnt/local. The image makes one volume of them by a service of its own; where it
# does not, they are made one here, but only if they are blank. Without them there is no /mnt/local.
own_disks() {
    local own=$root/mnt/local image=$root/opt/dlami/nvme disk disks blank=()
    systemctl start dlami-nvme.service || true # waits for its end where it is on its way
    if mountpoint -q "$image"; then
        mkdir -p "$image/shoal" && ln -sfn "$image/shoal" "$own"
        return
    fi
    mapfile -t disks < <(readlink -e "$root"/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_* | sort -u)
    for disk in "${disks[@]}"; do
        # A partition, or a disk with partitions or a file system, is not blank; blkid says 2 of one that is, and of one
        # that it cannot read.
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
own_disks || echo "the node's own disks cannot be used; its root volume serves instead" >&2

aws s3 cp --only-show-errors "$CODE_URL" "$home/code.zip"
aws s3 cp --only-show-errors "$WHEELS_URL" "$home/wheels.zip"
"$python" -m zipfile -e "$home/code.zip" "$home/code"
"$python" -m zipfile -e "$home/wheels.zip" "$home/wheels"
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --upgrade \
    --find-links "$home/wheels" --target "$home/site" -r "$home/wheels/requirements.txt"

# What the scripts below are told is quoted for the shell that will read them.
quoted() { printf %q "$1"; }
# Who works holds a shared lock, as do the processes that it starts. For reading: any user may hold it.
touch "$home/busy.lock"
cat >"$root/usr/local/bin/shoal-python" <<RUN
#!/bin/bash
exec 9<$(quoted "$home/busy.lock")
flock -s 9
export PYTHONPATH=$(quoted "$home/code:$home/site")
exec $(quoted "$python") "\$@"
RUN
cat >"$home/heartbeat" <<BEAT
#!/bin/bash
computing() { command -v nvidia-smi >/dev/null && nvidia-smi --query-compute-apps=pid --format=csv,noheader | grep -q .; }
while sleep $(quoted "${HEARTBEAT_SECONDS:-60}"); do
    if ! flock -n -x $(quoted "$home/busy.lock") true || computing; then
        aws s3api put-object --bucket $(quoted "$DATA_BUCKET") --key $(quoted "nodes/$instance.busy") >/dev/null
    fi
done
BEAT
chmod 755 "$root/usr/local/bin/shoal-python" "$home/heartbeat"
"$root/usr/local/bin/shoal-python" -c 'import trainer.loop'
# A driver that does not work would train on the CPU, at the price of the GPUs.
[ -n "${NODE_ROOT:-}" ] || "$root/usr/local/bin/shoal-python" -m trainer.devices "$GPUS"
# In a session of its own, and without this script's files, it outlives the first boot.
setsid nice "$home/heartbeat" </dev/null >>"$root/var/log/shoal-heartbeat.log" 2>&1 3>&- &
report ready
