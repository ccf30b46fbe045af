#include "notes.hpp"

#include <fmt/format.h>

#include <set>

#include <dtrain/base/text.hpp>

#include "ended.hpp"
#include "ssh_rule.hpp"

namespace dtrain::cluster {

static constexpr std::string_view kSubnetIsFull = "InsufficientFreeAddressesInSubnet";

static const char* why_workers_do_not_replace_head(const Spec& spec) {
  if (shared_kind(spec) == SharedKind::none) {
    return "setting 'heal' without a shared folder: workers cannot start a lost head again, because the program, the "
           "queue and the jobs would be lost with it. Give setting 'shared' efs, or start it yourself: by the same "
           "command, or by a watch that heals on another machine";
  }
  if (!wants_own_role(spec)) {
    return "the head has an instance profile of yours, so its workers get no role to start a lost head again: that is "
           "done by the same command, or by a watch that heals on another machine";
  }
  return "workers do not start a lost head again, as setting 'replace-head-after' says: that is done by the same "
         "command, or by a watch that heals on another machine";
}

static std::string machine_text(const Node& node) { return fmt::format("{} ({})", node.name, node.instance_id); }

std::string remains_text(Fleet known, const Fleet& now, const PriceList& prices) {
  std::vector<std::string> ended, names, types;
  for (const Node& node : take_ended(known, now)) ended.push_back(machine_text(node));
  for (const Node& node : known.nodes) {
    names.push_back(machine_text(node));
    types.push_back(node.type);
  }
  const std::string meanwhile =
      ended.empty() ? ""
                    : fmt::format("{} {} ended meanwhile, ", join(ended, ", "), ended.size() == 1 ? "has" : "have");
  if (names.empty()) return meanwhile + "what was made so far remains, without machines";
  return fmt::format("{}{} {} {} an hour", meanwhile, join(names, ", "),
                     names.size() == 1 ? "keeps running and costs" : "keep running and cost",
                     cost_text(cost_of(types, prices)));
}

std::vector<std::pair<std::string, std::string>> NoCapacity::details() const {
  std::vector<std::pair<std::string, std::string>> details{{"cause", "capacity"}};
  int number = 0;
  for (const Attempt& one : launched_.attempts) {
    details.emplace_back(fmt::format("attempt_{}", ++number),
                         fmt::format("{}: {} of {}: {}", one.pool.text(), one.got, one.wanted, one.code));
  }
  return details;
}

std::string capacity_hint(std::string hint, const Launched& launched) {
  std::set<std::string> full;
  for (const Attempt& one : launched.attempts) {
    if (one.code == kSubnetIsFull) full.insert(one.pool.subnet_id);
  }
  if (full.empty()) return hint;
  const std::vector<std::string> subnets(full.begin(), full.end());
  return fmt::format(
      "{}; {} {} no free address for a machine: free some, or make the cluster with setting 'subnet' and "
      "another one",
      hint, join(subnets, ", "), subnets.size() == 1 ? "has" : "have");
}

void add_notes(const Spec& spec, const Account& account, const Fleet& fleet, Plan& plan) {
  const auto note = [&](std::string_view text) { plan.notes.emplace_back(text); };
  if (shared_kind(spec) == SharedKind::none && spec.on != Service::emr) {
    note(
        "without a shared folder the coordinator stays on the head, and no other node can take over when the head is "
        "lost");
  }
  if (spec.heal && !workers_replace_head(spec)) note(why_workers_do_not_replace_head(spec));
  if (!account.kms_key.empty() && spec.spot != SpotUse::off) {
    note(
        fmt::format("spot instances use {} by the role AWSServiceRoleForEC2Spot of the account: the policy of the key, "
                    "or a grant (aws kms create-grant), must allow that",
                    account.kms_key));
  }
  if (shared_of(spec.shared).on_lustre() && spec.image == "ubuntu") {
    note(
        "setting 'shared' fsx: nodes need a client of Lustre, which the images of Ubuntu lack: give setting 'image' "
        "amazon-linux, whose packages have it, or an image of yours");
  }
  if (account.key.empty()) {
    note("no key pair: ssh to the nodes is impossible. Give setting 'key' NAME, or make a key with ssh-keygen");
  }
  if (!account.has_users_key) {
    note(fmt::format(
        "key pair {} of the cluster holds another key than your ~/.ssh/id_*.pub: log in with the key of who "
        "made the cluster",
        account.key));
  }
  if (account.ssh_source == "0.0.0.0/0" || account.ssh_source == "::/0") note("port 22 is open to the whole internet");
  const auto others = other_sources(fleet.group.value_or(SecurityGroup()), account.ssh_source);
  if (!others.empty()) note(fmt::format("port 22 is also open to {}, which dtrain leaves", join(others, ", ")));
  if (spec.time_to_live.count() == 0 && spec.autostop.count() == 0) {
    note(fmt::format("it runs until `cluster down`, and costs {} a day{}", cost_text(plan.cost, kHoursOfADay),
                     spec.on == Service::emr ? "" : "; setting 'ttl' 12h or setting 'autostop' 30m would end it"));
  }
}

}  // namespace dtrain::cluster
