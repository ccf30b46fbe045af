#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/stack.hpp>

#include "logins.hpp"
#include "plan/boot.hpp"

namespace dtrain::cluster {
namespace {

// Keeps what the nodes will overwrite, once. A boot that goes on, and on machines without systemd also what it started,
// holds the lock: then the rest does nothing. `setsid` has no option --fork in older images.
constexpr std::string_view kInstall = R"sh(
umask 077
kept=/var/lib/dtrain-before
if [ ! -d "$kept" ]; then
  rm -rf "$kept.new" && mkdir "$kept.new" || exit
  for one in /opt/deeplearning/workers /etc/profile.d/deeplearning.sh; do
    [ ! -e "$one" ] || cp -p "$one" "$kept.new" || exit
  done
  mv "$kept.new" "$kept" || exit
fi
cat >/var/lib/dtrain-boot.new && mv /var/lib/dtrain-boot.new /var/lib/dtrain-boot || exit
trap '' HUP
setsid flock -n /var/lib/dtrain-boot.lock sh /var/lib/dtrain-boot </dev/null >/dev/null 2>&1 &
)sh";

// Ends the programs first, which would write the files again: on machines without systemd by their command lines, of
// which that of this script is none. In /etc/hosts other lines may have changed meanwhile, so that it loses the names
// of the cluster alone.
constexpr std::string_view kRemove = R"sh(
for one in node jobs heal head guard; do
  [ ! -d /run/systemd/system ] || systemctl stop "dtrain-$one.service" 2>/dev/null
  rm -f "/etc/systemd/system/dtrain-$one.service"
done
rm -f /var/lib/cloud/scripts/per-boot/dtrain
ours() {
  for one in /proc/[0-9]*; do
    case $(tr '\0' ' ' 2>/dev/null <"$one/cmdline") in
      "sh /var/lib/dtrain-boot "* | "/bin/sh /var/lib/cloud/scripts/per-boot/dtrain "* | \
        */opt/dtrain/bundle/*"dtrain agent --"*" /opt/dtrain/node.json ") echo "${one#/proc/}" ;;
    esac
  done
}
for signal in TERM TERM TERM TERM TERM KILL; do
  pids=$(ours)
  [ -n "$pids" ] || break
  kill -s $signal $pids 2>/dev/null
  sleep 1
done
kept=/var/lib/dtrain-before
if [ -d "$kept" ]; then
  for one in /opt/deeplearning/workers /etc/profile.d/deeplearning.sh; do
    if [ -e "$kept/${one##*/}" ]; then cp -p "$kept/${one##*/}" "$one"; else rm -f "$one"; fi || exit
  done
  rmdir /opt/deeplearning 2>/dev/null
  names='/^# begin of the cluster.s names, written by dtrain$/,/^# end of the cluster.s names$/d'
  sed "$names" /etc/hosts >/etc/hosts.dtrain && cat /etc/hosts.dtrain >/etc/hosts && rm /etc/hosts.dtrain || exit
fi
rm -rf /var/lib/dtrain-boot /var/lib/dtrain-boot.lock "$kept" /opt/dtrain
)sh";

std::vector<const Node*> adopted_in(const Fleet& fleet) {
  std::vector<const Node*> nodes;
  for (const Node& node : fleet.nodes) {
    if (is_adopted(node) && node.state == "running") nodes.push_back(&node);
  }
  return nodes;
}

}  // namespace

std::vector<std::string> install_on_machines(const Fleet& fleet, const ClusterRequest& request,
                                             const Account& account) {
  const Node* head = fleet.head();
  if (!head) throw UsageError(fmt::format("cluster {} has no head", fleet.name));
  ClusterRequest gentle = request;
  gentle.admission = fleet.group->tags.at(tag::kAdmission);
  // These machines are the stack's: none may be turned off because it did not boot.
  gentle.spec.keep_failed = true;
  gentle.spec.time_to_live = gentle.spec.autostop = std::chrono::seconds(0);
  const MachineLogins logins(fleet);
  return on_each(adopted_in(fleet), [&](const Node& node) {
    const bool is_head = node.role == Role::head;
    net::SshSession session = logins.log_in(node);
    MachineLogins::run_as_root(session, kInstall,
                               boot_script(gentle, account, is_head ? NodeBoot::Role::head : NodeBoot::Role::worker,
                                           is_head ? std::string() : head->private_ip, account.file_system, true));
  });
}

std::vector<std::string> remove_from_machines(const Fleet& fleet) {
  const MachineLogins logins(fleet);
  return on_each(adopted_in(fleet), [&](const Node& node) {
    net::SshSession session = logins.log_in(node);
    MachineLogins::run_as_root(session, kRemove, {});
  });
}

}  // namespace dtrain::cluster
