#include "admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kToReachAll{120};

std::string joined(const std::vector<std::string>& names) { return join_first(names, 8, ", "); }

// `other`: "NAME (FOLDER)" of the cluster that has the host. If its name is the one that was asked for, it is most
// likely the same cluster, registered with another shared folder.
std::string hint_of_member(const std::string& host, const std::string& other, const std::string& name) {
  if (other.starts_with(name + " (")) {
    return fmt::format("give the --shared FOLDER that cluster {} was registered with, the part before /dtrain-jobs",
                       name);
  }
  return fmt::format("`dtrain cluster remove` with that cluster and {} takes it out, where it is registered", host);
}

}  // namespace

Admission::Admission(Site& site, cluster::RegisteredCluster cluster, bool yes, Reporter& reporter)
    : site_(site), cluster_(std::move(cluster)), yes_(yes), reporter_(reporter) {}

Admission::~Admission() {
  if (probe_.empty()) return;
  try {
    site_.ask_head(cluster_.head(), Json::object({{"ask", "unplace"}, {"probe", probe_}}));
  } catch (const std::exception&) {  // the next one that is made there removes it
  }
}

void Admission::place() {
  const Json placed = site_.ask_head(
      cluster_.head(), Json::object({{"ask", "place"}, {"name", cluster_.name}, {"shared", cluster_.shared}}));
  cluster_.shared = placed.at("shared").as_string();
  cluster_.folder = placed.at("folder").as_string();
  probe_ = placed.at("probe").as_string();
  const Json& there = placed.at("cluster");
  if (there.is_null()) return;
  const auto before = cluster::registered_cluster_from(there, "the head");
  cluster_.own_key = before.own_key;
  before_ = before.hosts;
}

bool Admission::was_member(const std::string& host) const {
  return std::ranges::find(before_, host, &cluster::RegisteredHost::name) != before_.end();
}

// A member that is lost must not keep the others from another head, a budget or prices. The head itself has to act.
bool Admission::may_be_away(const std::string& host) const { return was_member(host) && host != cluster_.head().name; }

std::vector<cluster::RegisteredHost> Admission::present(const std::vector<cluster::RegisteredHost>& fresh,
                                                        const std::vector<SeenHost>& seen) const {
  std::vector<cluster::RegisteredHost> here;
  std::ranges::copy_if(fresh, std::back_inserter(here), [&](const cluster::RegisteredHost& host) {
    const auto found = std::ranges::find(seen, host.name, &SeenHost::name);
    return found != seen.end() && found->is_fit();
  });
  return here;
}

void Admission::refuse_unfit(const std::vector<SeenHost>& fresh) const {
  if (const std::string text = unfit_text(fresh); !text.empty()) {
    const auto first = std::ranges::find_if_not(fresh, &SeenHost::is_fit);
    throw RemoteError(text, first->hint.empty() ? "leave the host out, or try again once it answers ssh" : first->hint);
  }
  std::vector<std::string> blind;
  for (const SeenHost& host : fresh) {
    if (host.facts->other_cluster) {
      throw UsageError(fmt::format("{} belongs to cluster {}", host.name, *host.facts->other_cluster),
                       hint_of_member(host.name, *host.facts->other_cluster, cluster_.name));
    }
    if (!host.facts->sees_shared) blind.push_back(host.name);
  }
  if (blind.empty()) return;
  throw UsageError(fmt::format("{} of the head is not the same folder on {}", cluster_.shared, joined(blind)),
                   "all hosts need one shared folder, such as one of NFS: mount it at the same path, and give it as "
                   "--shared FOLDER");
}

void Admission::refuse_twins(const std::vector<SeenHost>& seen) const {
  std::map<std::string, std::string> names;
  for (const SeenHost& host : seen) {
    if (!host.is_fit()) continue;
    const auto [one, is_new] = names.emplace(host.facts->machine, host.name);
    if (is_new) continue;
    throw UsageError(fmt::format("{} and {} are one machine, {}", one->second, host.name, host.facts->host_name),
                     "leave one of them out; slots=n in its line gives it several workers");
  }
}

// Jobs run whatever the clocks say; logs and records of the hosts then disagree.
void Admission::warn_of_clocks(const std::vector<SeenHost>& seen) const {
  for (const SeenHost& host : seen) {
    if (!host.facts->clock || !host.facts->clock->is_wrong()) continue;
    reporter_.warn(fmt::format("{}: its clock is {:+.1f} s off this machine's, so times in logs will not agree",
                               host.name, host.facts->clock->seconds));
  }
}

std::vector<std::string> Admission::not_reached(const std::vector<cluster::RegisteredHost>& fresh) {
  cluster::RegisteredCluster asked = cluster_;
  asked.hosts = fresh;
  const Json answer =
      site_.ask_head(cluster_.head(), Json::object({{"ask", "reach"}, {"cluster", to_json(asked)}}), kToReachAll);
  std::vector<std::string> failed;
  for (const Json& one : answer.at("failed").as_array()) failed.push_back(one.at("why").as_string());
  return failed;
}

// With its own keys, or with one that is made for the cluster.
void Admission::choose_key(const std::vector<cluster::RegisteredHost>& fresh) {
  if (!cluster_.own_key) {
    const std::vector<std::string> failed = not_reached(fresh);
    if (failed.empty()) return;
    for (const std::string& why : failed) reporter_.note(fmt::format("the head {}: {}", cluster_.head().name, why));
    require_consent(yes_,
                    fmt::format("the head {} cannot log in to {} of {} hosts: let a key of cluster {} open them for "
                                "their login (a line in ~/.ssh/authorized_keys)?",
                                cluster_.head().name, failed.size(), fresh.size(), cluster_.name),
                    reporter_);
  }
  const Json answer = site_.ask_head(cluster_.head(), Json::object({{"ask", "key"}, {"cluster", to_json(cluster_)}}));
  key_ = answer.at("key").as_string();
  cluster_.own_key = true;
}

void Admission::dismiss(const std::vector<cluster::RegisteredHost>& fresh) {
  std::vector<cluster::RegisteredHost> newcomers = fresh;
  std::erase_if(newcomers, [this](const cluster::RegisteredHost& host) { return was_member(host.name); });
  site_.tell("leave", cluster_, newcomers, key_);
}

void Admission::admit(const std::vector<cluster::RegisteredHost>& fresh) {
  const std::vector<SeenHost> seen = site_.look(cluster_, probe_);
  // Hosts that were not asked any more must not be taken for hosts that are away.
  if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped; no host became a member");
  std::vector<SeenHost> needed;
  for (const SeenHost& host : seen) {
    if (std::ranges::find(fresh, host.name, &cluster::RegisteredHost::name) == fresh.end()) continue;
    if (host.is_fit() || !may_be_away(host.name)) {
      needed.push_back(host);
    } else {
      reporter_.warn(fmt::format("{}: {}; it stays a host of cluster {}", host.name, host.why, cluster_.name));
    }
  }
  refuse_unfit(needed);
  refuse_twins(seen);
  warn_of_clocks(needed);
  const std::vector<cluster::RegisteredHost> here = present(fresh, needed);
  choose_key(here);
  std::string problem = unfit_text(site_.tell("join", cluster_, here, key_));
  if (problem.empty() && cluster_.own_key) problem = join(not_reached(here), "\n");
  if (problem.empty()) return;
  dismiss(here);
  throw RemoteError(fmt::format("the hosts could not be made members, and were left as they were: {}", problem),
                    "name each host so that the head reaches it too, by an address that both networks know");
}

}  // namespace dtrain::cli
