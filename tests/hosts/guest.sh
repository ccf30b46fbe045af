#!/usr/bin/env bash
# Jobs over ssh whose machines share a real NFSv4.1 folder: tests/hosts/guest.sh DTRAIN [--slow] [SUITE...]
# Runs tests/hosts/run.sh in a QEMU guest with Debian's own kernel, which has an NFS server and client, on a copy-on-write
# view of this machine's files. The folder is mounted as AWS has people mount EFS, which is NFSv4.1 too. The
# guest's processor is emulated, so that this runs wherever a person is root, but slowly: a test of a job takes 5 to 15
# minutes, so name the ones that matter, as in `guest.sh DTRAIN life.a_job_on_two_machines`. The last line is the sum, as that of
# run.sh; after DTRAIN_GUEST_LIMIT seconds (3600) the guest is switched off, and what it said until then is shown.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tests/hosts/guest.sh DTRAIN [--slow] [SUITE...]" >&2; exit 2; }
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
program=$(realpath "$1")
shift
readonly work=${TMPDIR:-/tmp}/dtrain-guest.$$ kernels=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain-guest
readonly limit=${DTRAIN_GUEST_LIMIT:-3600} memory=${DTRAIN_GUEST_MEMORY:-6000}
release='' kernel=''

main() {
  local tool
  for tool in qemu-system-x86_64 busybox cpio modprobe rpc.nfsd mount.nfs4; do
    PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || { echo "SKIP guest: no program $tool here"; exit 77; }
  done
  [ "$(id -u)" = 0 ] || { echo "SKIP guest: showing it this machine's files needs root"; exit 77; }
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/out"
  find_kernel
  make_first_root
  write_command "$@"
  start_guest
  cat "$work/out/said" 2>/dev/null || { tail -n 20 "$work/console.log"; exit 1; }
  exit "$(cat "$work/out/status" 2>/dev/null || echo 1)"
}

find_kernel() {  # the distribution's, fetched once
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
  kernel=$kernels/$package
  if [ ! -d "$kernel" ]; then
    mkdir -p "$kernels"
    (cd "$work" && apt-get download -q "$package" >&2 && dpkg-deb -x "$package"_*.deb "$work/kernel")
    mv "$work/kernel" "$kernel"
  fi
  release=${package#linux-image-}
  [ -f "$kernel/lib/modules/$release/modules.dep" ] || depmod -b "$kernel" "$release"
}

# What the guest starts with: enough to see this machine's files, on top of which it may write.
make_first_root() {
  local first=$work/first module number=100
  mkdir -p "$first"/{bin,proc,sys,dev,new,lower,upper,modules}
  cp "$(command -v busybox)" "$first/bin/"
  for module in virtio_pci 9pnet_virtio 9p overlay; do
    modprobe -d "$kernel" -S "$release" --show-depends $module
  done | awk '/^insmod/ && !seen[$2]++ {print $2}' | while read -r module; do
    cp "$module" "$first/modules/$((number++))-$(basename "$module")"
  done
  cat >"$first/init" <<'END'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sysfs /sys; $b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod $module; done
share=trans=virtio,version=9p2000.L,msize=262144
$b mount -t 9p -o $share,cache=loose,ro root /lower || exec $b sh
$b mount -t tmpfs -o size=2g upper /upper; $b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
for folder in dev proc sys; do $b mount --move /$folder /new/$folder; done
$b mkdir -p /new/out /new/dev/shm /new/dev/pts /new/usr/lib/modules
for folder in run dev/shm; do $b mount -t tmpfs tmp /new/$folder; done
$b mount -t devpts pts /new/dev/pts
$b mount -t 9p -o $share out /new/out
$b mount -t 9p -o $share,ro modules /new/usr/lib/modules
exec $b switch_root /new /bin/bash /out/run
END
  chmod +x "$first/init"
  (cd "$first" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/first.gz"
}

write_command() {
  local command
  command=$(printf '%q ' bash "$here/run.sh" "$program" "$@")
  cat >"$work/out/run" <<END
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DTRAIN_LAB_NFS=1 DTRAIN_TEST_SLOWNESS=8
export DTRAIN_TEST_DATA=$(printf %q "${DTRAIN_TEST_DATA:-}")
hostname guest
ip link set lo up
modprobe -a veth bridge overlay nfsd nfsv4
$command </dev/null >/out/said 2>&1
echo \$? >/out/status
sync
echo o >/proc/sysrq-trigger
sleep 20
END
}

start_guest() {
  local share=local,security_model=passthrough
  timeout "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "$(nproc)" -m "$memory" \
    -nographic -nic none -no-reboot \
    -kernel "$kernel/boot/vmlinuz-$release" -initrd "$work/first.gz" \
    -append "console=ttyS0 quiet panic=-1 rdinit=/init random.trust_cpu=on" \
    -virtfs "$share,path=/,mount_tag=root,readonly=on,multidevs=remap" \
    -virtfs "$share,path=$work/out,mount_tag=out" \
    -virtfs "$share,path=$kernel/lib/modules,mount_tag=modules,readonly=on" </dev/null >"$work/console.log" 2>&1 || true
}

main "$@"
