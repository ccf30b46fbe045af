#!/usr/bin/env bash
# The first process of one machine of the lab: host_init.sh NAME ADDRESS LAB. In namespaces of its own (lab.py): waits for
# its network card, makes its root folder, and serves ssh. The root is a view of this machine's in which the host may
# change anything; /run/lab/shared is the folder that all hosts share.
set -euo pipefail
name=$1 address=$2 lab=$3 disk=$3/$1
root=$disk/root
share_server=''  # the address of the machine that serves the shared folder, where that is not simply there

main() {
  if [ -e "$lab/share-by-network" ]; then share_server=${address%.*}.1; fi
  plug_in
  make_root
  make_login
  mkdir "$root/old" 2>/dev/null || true
  cd "$root"
  pivot_root . old
  # shellcheck disable=SC2016  # the inner shell reaps what is left to the first process
  exec chroot . /bin/bash -c '
    mount -t proc proc /proc
    umount -l /old
    if [ -n "$1" ]; then
      until sshfs "root@$1:/run/lab/shared" /run/lab/shared -F none \
        -o StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null,ConnectTimeout=3,ServerAliveInterval=1,ServerAliveCountMax=3 \
        -o reconnect,dir_cache=no,sshfs_sync,attr_timeout=0,entry_timeout=0,negative_timeout=0
      do sleep 0.2; done
    fi
    /usr/sbin/sshd -D -E /var/log/sshd.log &
    while :; do wait; sleep 0.2; done' host "$share_server"
}

plug_in() {
  until ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done
  ip link set lo up
  case $address in
    *:*) ip address add "$address/64" dev eth0 nodad ;;
    *) ip address add "$address/${LAB_PREFIX:-24}" dev eth0 ;;
  esac
  ip link set eth0 up
}

make_root() {
  mount --make-rprivate /
  mkdir -p "$disk/upper" "$disk/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$disk/upper,workdir=$disk/work" "$root"
  mount --rbind /dev "$root/dev"
  mount -t sysfs sysfs "$root/sys"
  mount -t tmpfs -o mode=1777 tmp "$root/tmp"
  mount -t tmpfs -o mode=755 run "$root/run"
  mkdir -p "$root/run/lab/shared" "$root/run/sshd"
  if [ ! -e "$disk/no-share" ]; then mount_share; fi
  if [ ! -e "$disk/no-program" ]; then
    touch "$root/usr/local/bin/dtrain"
    mount --bind "$DTRAIN" "$root/usr/local/bin/dtrain"
  fi
  if [ -n "${DTRAIN_TEST_DATA:-}" ]; then
    mkdir -p "$root$DTRAIN_TEST_DATA"
    mount --bind "$DTRAIN_TEST_DATA" "$root$DTRAIN_TEST_DATA"
  fi
  hostname "$name"
  echo "$name" >"$root/etc/hostname"
  cp "$lab/hosts" "$root/etc/hosts"
}

mount_share() {
  if [ -n "$share_server" ]; then return; fi  # mounted once the machine has its own root: that asks a lost server again
  if [ -z "${DTRAIN_LAB_NFS:-}" ]; then
    mount --bind "$lab/shared" "$root/run/lab/shared"
  else  # with the options that AWS recommends for EFS
    mount -t nfs4 -o nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport \
      "${address%.*}.1:/" "$root/run/lab/shared"
  fi
}

make_login() {  # root's, empty but for the lab's key
  local home=$root/root
  mount -t tmpfs -o mode=700 home "$home"
  mkdir -m 700 "$home/.ssh"
  install -m 600 "$lab/key.pub" "$home/.ssh/authorized_keys"
  if [ ! -e "$disk/no-key" ]; then
    install -m 600 "$lab/key" "$home/.ssh/id_ed25519"
    install -m 644 "$lab/key.pub" "$home/.ssh/id_ed25519.pub"
  fi
  rm -rf "$root"/etc/ssh/ssh_host_* "$root/etc/ssh/sshd_config.d"
  install -m 600 "$disk/host_key" "$root/etc/ssh/ssh_host_ed25519_key"
  cat >"$root/etc/ssh/sshd_config" <<END
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
Subsystem sftp $(cat "$disk/sftp" 2>/dev/null || echo internal-sftp)
PidFile /run/sshd.pid
LogLevel VERBOSE
$(cat "$disk/sshd_options" 2>/dev/null || true)
END
}

main
