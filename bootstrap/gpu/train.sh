#!/bin/bash
# Trains on this GPU node, and on other nodes that run the same command: train.sh DATASET OUTPUT [OPTION...].
# DATASET is a dataset.h5 and OUTPUT a folder for the results, each a path or an s3:// address. The options are those of
# `python -m trainer`. boot.sh installs this script as the command shoal-train, which sets ADDRESS (of this node) and
# RANKS (its number of GPUs). NODES has the private addresses of all nodes, in the same order on each node (default:
# this node alone); a node cannot look them up, because its network reaches S3, but not the API of EC2.
set -euo pipefail

fail() {
    echo "$1" >&2
    exit 1
}
[ $# -ge 2 ] || fail "usage: [NODES='ADDRESS...'] $0 DATASET OUTPUT [OPTION of python -m trainer...]"
dataset=$1
output=${2%/}
shift 2
root=${NODE_ROOT:-}
python=$root/usr/local/bin/shoal-python

read -ra nodes <<<"${NODES:-$ADDRESS}"
node_rank=
for number in "${!nodes[@]}"; do
    [ "${nodes[number]}" != "$ADDRESS" ] || node_rank=$number
done
[ -n "$node_rank" ] || fail "NODES is '$NODES', but must contain the address of this node, $ADDRESS"

disk=$root/mnt/local
[ -d "$disk" ] || disk=$root/var/cache/shoal
data=$dataset folder=$output
if [[ $dataset == s3://* ]]; then
    data=$disk/datasets/${dataset#s3://}
    [ -e "$data" ] || aws s3 cp --only-show-errors "$dataset" "$data"
fi
[[ $output != s3://* ]] || folder=$root/mnt/share/runs/${output##*/} # a shared folder allows --resume

if [ "${#nodes[@]}" -gt 1 ]; then # the host name can have an address that other nodes cannot reach
    find_device='import sys; from bootstrap.node.machine import device_of; print(device_of(sys.argv[1]) or "")'
    device=$("$python" -P -c "$find_device" "$ADDRESS")
    [ -z "$device" ] || export GLOO_SOCKET_IFNAME=$device NCCL_SOCKET_IFNAME=$device
fi
# Without this variable, a rank without a GPU would compute on the CPU of an expensive node. Emulated nodes have no GPU.
[ -n "$root" ] || export SHOAL_NEEDS_GPU=1
# trainer.launch is torchrun with better error messages.
torchrun=("$python" -P -m trainer.launch --max-restarts=3 --tee=3 "--nnodes=${#nodes[@]}" "--node-rank=$node_rank"
    "--nproc-per-node=$RANKS" "--master-addr=${nodes[0]}" "--master-port=${PORT:-29500}")
program=("${torchrun[@]}" -m trainer --data "$data" --output "$folder" --cache "$disk/rows" "$@")
[[ $output == s3://* && $node_rank == 0 ]] || exec "${program[@]}"
"${program[@]}"
exec aws s3 cp --only-show-errors --recursive "$folder" "$output"
