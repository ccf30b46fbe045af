#!/usr/bin/env bash
# For run.sh with DTRAIN_LAB_NFS set, in a kernel that can: the folder that all machines share is served as NFSv4.1 instead of being bound.
set -euo pipefail
mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /var/lib/nfs/v4recovery
exportfs -o rw,sync,insecure,no_root_squash,no_subtree_check,fsid=0 '*:/run/lab/shared'
rpc.nfsd -N 3 8
rpc.mountd --no-nfs-version 3
