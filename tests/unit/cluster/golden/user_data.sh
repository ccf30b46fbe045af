#!/bin/sh
# A node of cluster demo, made by dtrain.
# spec: {"workers":2,"types":["c5.large","c5a.large"]}
cluster=demo
role=worker
head_only=no
head=172.31.5.9
port=7171
proof=f5a267ab0fdf07fa8caefd19a001fc8a86cd231a5ace9255fb3237630191935b
sha256=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
login=ubuntu
region=eu-west-1
domain=amazonaws.com
shared=efs
file_system=fs-0123456789abcdef0
mount_target=172.31.7.7
mount_name=''
folder=/myEFSvolume
prepare='python3 prepare-data.py --name '\''a b'\'''
prepare_deadline=3600
boot_deadline=1800
time_to_live=0
autostop=0
heal=no
guard=no
keep_failed=no
node_json='{"schema":"dtrain.node/1","cluster":"demo","head":"172.31.5.9","port":7171,"admission":"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc","bundle":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","login":"ubuntu","region":"eu-west-1","folder":"/myEFSvolume","replace_head_after":0}'
# shellcheck shell=sh disable=SC2154
# The rest is the same on every node; what is given above differs.
set -u
umask 022
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
home=/opt/dtrain
log=/var/log/dtrain-node.log
imds=http://169.254.169.254/latest
per_boot=/var/lib/cloud/scripts/per-boot

main() {
  mkdir -p "$home/incoming" /opt/deeplearning
  id "$login" >/dev/null 2>&1 || login=root
  chown "$login" "$home/incoming"
  echo "$sha256" >"$home/incoming/wanted"
  umask 077; printf '%s\n' "$node_json" >"$home/node.json"; run_at_each_boot; umask 022
  [ "$time_to_live" -eq 0 ] || live_no_longer
  address=$(about_me meta-data/local-ipv4) || address=$(hostname)
  [ "$shared" = none ] || stage mount make_shared
  [ -x "$home/bundle/dtrain" ] || stage bundle get_bundle
  if [ -n "$prepare" ] && [ ! -e "$home/prepared" ]; then stage prepare run_prepare; touch "$home/prepared"; fi
  stage agent start_agent
  say "ready"
  [ "$autostop" -eq 0 ] || stop_when_idle
}

# cloud-init runs user data once, and the programs of this folder each time the machine starts: what is on the disk is
# kept, and mounts, agents and time limits begin anew.
run_at_each_boot() {
  mkdir -p "$per_boot"
  case $0 in "$per_boot"/*) ;; *) cp "$0" "$per_boot/dtrain" && chmod 700 "$per_boot/dtrain" ;; esac
}

say() {
  line="dtrain: $(date -u +%FT%TZ) $*"
  echo "$line" >>"$log"
  ( echo "$line" >/dev/console ) 2>/dev/null
}

# stage NAME FUNCTION: what it says goes to the log; a failure ends the boot.
stage() {
  say "$1 begins"
  stage_log=$home/$1.log
  ( set -e; "$2" ) >"$stage_log" 2>&1
  code=$?
  cat "$stage_log" >>"$log"
  [ "$code" -eq 0 ] || fail "$1" "$code"
}

# The head learns the exit code and the last 4 KB, the console too; then the node goes, which ends what it costs.
fail() {
  say "$1 failed with exit code $2"
  ( tail -c 4096 "$home/$1.log" >/dev/console ) 2>/dev/null
  ( umask 077; { echo "$proof $address $1 $2"; tail -c 4096 "$home/$1.log"; } >"$home/failure" )
  if [ "$role" = worker ]; then
    http POST "http://$head:$port/failure" /dev/null "$home/failure" || say "the head did not take the report"
  fi
  if [ "$keep_failed" = yes ]; then say "stays on, as --keep-failed says"; else power_off; fi
  exit 1
}

power_off() { say "powers off"; shutdown -h now || poweroff -f; }

# Counted from the start of the machine, by a clock that is never set. The head tells workers when it ends.
live_no_longer() {
  read -r up _ </proc/uptime
  echo "$((${up%%.*} + time_to_live))" >"$home/ends"
  ( trap '' HUP; sleep "$time_to_live"; say "its time to live is over"; power_off ) >/dev/null 2>&1 </dev/null &
}

stop_when_idle() {
  (
    trap '' HUP
    busy_at=$(date +%s)
    while sleep "$((autostop < 10 ? autostop : 10))"; do
      if busy; then busy_at=$(date +%s); fi
      if [ "$(($(date +%s) - busy_at))" -ge "$autostop" ]; then say "idle for $autostop s"; power_off; fi
    done
  ) >/dev/null 2>&1 </dev/null &
}

# A user is at a terminal, or dtrain works here: an agent or a coordinator of a job, or another command. Sessions of ssh
# without a terminal do not count, for `dtrain cluster watch` keeps such a connection to the head; nor does what this
# boot started, which is dtrain as well.
busy() {
  who | grep -q . && return
  works='agent|train|launch|eval|data|run|bench|predict|export|import'
  # shellcheck disable=SC2009  # pgrep cannot leave out what this boot started
  ps -eo args= | grep -v -e 'dtrain agent --head' -e 'dtrain agent --node' -e 'dtrain agent --jobs' -e 'dtrain agent --heal' -e 'dtrain agent --guard' |
    grep -Eq "(^|/| )dtrain( --(config|color) [^ ]+| -[^ ]+)* ($works)( |\$)"
}

# http METHOD URL OUTPUT [FILE [HEADER]]: with the program that the image has; FILE is sent. A server that stalls for
# 30 s is given up.
http() {
  if command -v curl >/dev/null; then
    set -- "$1" "$2" "$3" "${4:-}" "${5:-X-dtrain: 1}"
    patience='--connect-timeout 5 --speed-limit 1000 --speed-time 30'
    if [ -n "$4" ]; then
      # shellcheck disable=SC2086  # these are words
      curl -sSf --noproxy '*' $patience -X "$1" -H "$5" -o "$3" --data-binary "@$4" "$2"
    else
      # shellcheck disable=SC2086
      curl -sSf --noproxy '*' $patience -X "$1" -H "$5" -o "$3" "$2"
    fi
  else
    wget -q --no-proxy -T 30 -t 1 --method="$1" --header="${5:-X-dtrain: 1}" ${4:+--body-file="$4"} -O "$3" "$2"
  fi
}

about_me() {
  http PUT "$imds/api/token" "$home/imds" '' 'X-aws-ec2-metadata-token-ttl-seconds: 300' &&
    http GET "$imds/$1" "$home/answer" '' "X-aws-ec2-metadata-token: $(cat "$home/imds")" && cat "$home/answer"
  about_code=$?
  rm -f "$home/imds" "$home/answer"
  return $about_code
}

# Nothing of the bundle is unpacked or run before its hash is known to be the right one.
get_bundle() {
  file=$home/incoming/$sha256.tar
  kept=$folder/.dtrain/$cluster/$sha256.tar
  end=$(($(date +%s) + boot_deadline))
  until bring_bundle; do
    if [ "$(date +%s)" -ge "$end" ]; then echo "no bundle within $boot_deadline s"; return 1; fi
    sleep 2
  done
  is_wanted "$file" || { rm -f "$file"; echo "this is not the bundle that was asked for"; return 1; }
  keep_bundle
  rm -rf "$home/unpacked"; mkdir -p "$home/unpacked"
  tar -xf "$file" -C "$home/unpacked"
  rm -rf "$home/bundle"; mv "$home/unpacked" "$home/bundle"
}

is_wanted() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum -c -; }

# Where another head finds it, which no user's machine has to bring it to.
keep_bundle() {
  if [ "$role" != head ] || [ "$shared" = none ] || is_wanted "$kept"; then return 0; fi
  { rm -rf "${kept%/*}" && mkdir -p "${kept%/*}" && cp "$file" "$kept.part" && mv "$kept.part" "$kept"; } ||
    echo "the shared folder does not take the bundle"
}

bring_bundle() {  # the first head's comes by ssh
  if [ "$shared" != none ] && is_wanted "$kept"; then cp "$kept" "$file"; return; fi
  if [ "$role" = head ] || [ -f "$file" ]; then [ -f "$file" ]; return; fi
  http GET "http://$head:$port/bundle/$sha256" "$file.part" && mv "$file.part" "$file"
}

make_shared() {
  mkdir -p "$folder"
  if [ "$shared" = efs ]; then
    mountpoint -q "$folder" || { get_nfs; mount_efs; }
  elif [ "$shared" = lustre ]; then
    mountpoint -q "$folder" || { get_lustre; mount_lustre; }
  fi
  chown "$login" "$folder"
}

get_nfs() {
  command -v mount.nfs4 >/dev/null && return
  if command -v apt-get >/dev/null; then
    apt-get update -q || true; DEBIAN_FRONTEND=noninteractive apt-get install -qy nfs-common
  elif command -v dnf >/dev/null; then dnf install -qy nfs-utils
  else yum install -qy nfs-utils; fi
}

mount_efs() {  # by its name, which AWS recommends; a zone without a mount target of its own has no such name
  options=nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport
  late=$(($(date +%s) + 120))  # a new mount target takes a minute or two
  end=$((late + 180))
  while :; do
    mount -t nfs4 -o "$options" "$file_system.efs.$region.$domain:/" "$folder" && return
    if [ -n "$mount_target" ] && [ "$(date +%s)" -ge "$late" ]; then
      mount -t nfs4 -o "$options" "$mount_target:/" "$folder" && return
    fi
    if [ "$(date +%s)" -ge "$end" ]; then return 1; fi
    sleep 5
  done
}

get_lustre() {  # packages of Amazon Linux; other images need the client for their kernel
  command -v mount.lustre >/dev/null && return
  if command -v dnf >/dev/null; then dnf install -qy lustre-client || true
  elif command -v amazon-linux-extras >/dev/null; then amazon-linux-extras install -y lustre || true; fi
  command -v mount.lustre >/dev/null && return
  echo "no client of Lustre in this image: give --image amazon-linux, or one that has it"
  return 1
}

mount_lustre() {  # a new file system takes about ten minutes
  end=$(($(date +%s) + 1200))
  until mount -t lustre -o relatime,flock "$file_system.fsx.$region.$domain@tcp:/$mount_name" "$folder"; do
    if [ "$(date +%s)" -ge "$end" ]; then return 1; fi
    sleep 5
  done
}

run_prepare() {
  [ "$shared" = none ] || cd "$folder"
  timeout -k 10 "$prepare_deadline" sh -c "$prepare" || {
    code=$?
    if [ "$code" -eq 124 ]; then echo "prepare did not end within $prepare_deadline s"; fi
    return "$code"
  }
  [ "$shared" = none ] || touch "$folder/prepare_data_success_$address"
}

start_agent() {
  if [ "$role" = head ]; then
    keep_running head; keep_running jobs
    [ "$heal" = no ] || keep_running heal
  fi
  if [ "$role" != head ] || [ "$head_only" = no ]; then keep_running node; fi
  [ "$guard" = no ] || keep_running guard
}

keep_running() {  # keep_running head|jobs|heal|node|guard: again when it ends
  command="$home/bundle/dtrain agent --$1 $home/node.json"
  if [ -d /run/systemd/system ]; then
    cat >"/etc/systemd/system/dtrain-$1.service" <<END
[Unit]
Description=dtrain, $1 of cluster $cluster
After=network-online.target remote-fs.target
Wants=network-online.target
[Service]
ExecStart=$command
Restart=always
RestartSec=2
KillMode=process
LimitNOFILE=65536
END
    systemctl daemon-reload
    systemctl start "dtrain-$1.service"
  else
    ( trap '' HUP; while :; do $command >>"$log" 2>&1 || true; sleep 2; done ) >/dev/null 2>&1 </dev/null &
  fi
}

main
