#include "registered_look.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kToReach{120};

// Throws only Stopped, after a signal.
RegisteredLook ask(Site& site, const cluster::RegisteredCluster& known) {
  RegisteredLook look{.cluster = known};
  const auto failure = attempt([&] {
    try {
      const Json answer = site.ask_head(known.head(), Json::object({{"ask", "describe"}, {"name", known.name}}));
      look.cluster = cluster::registered_cluster_from(answer.at("cluster"), "the answer of the head");
      look.runner = answer.at("runner").as_bool();
      look.jobs = answer.at("jobs");
      look.events = answer.at("events");
      look.answers = true;
      cluster::remember(look.cluster);
    } catch (const UsageError&) {  // for one, that the cluster is being taken down
      look.answers = true;
      throw;
    }
  });
  if (failure) look.unknown = failure->what();
  return look;
}

// The file that all hosts must see: it is there as long as the cluster is.
std::string seen_by_all(const cluster::RegisteredCluster& cluster) { return cluster.host_file().string(); }

}  // namespace

std::optional<cluster::ClockOffset> RegisteredLook::offset_of(std::size_t host) const {
  const auto clock_of = [this](std::size_t at) { return hosts[at].is_fit() ? hosts[at].facts->clock : std::nullopt; };
  const auto own = clock_of(host), head = clock_of(0);
  if (!own || !head) return std::nullopt;
  return cluster::ClockOffset{own->seconds - head->seconds, own->within + head->within};
}

RegisteredLook ask_registered(const cluster::RegisteredCluster& known, Reporter& reporter) {
  watch_stop_signals();
  Site site(known.name, reporter);
  return ask(site, known);
}

RegisteredLook look_at_registered(const cluster::RegisteredCluster& known, bool no_head, bool deep,
                                  Reporter& reporter) {
  watch_stop_signals();
  Site site(known.name, reporter);
  RegisteredLook look =
      no_head ? RegisteredLook{.cluster = known, .unknown = "not contacted because of --no-head"} : ask(site, known);
  look.hosts = site.look(look.cluster, seen_by_all(look.cluster));
  if (!deep || !look.unknown.empty()) return look;
  cluster::RegisteredCluster answering = look.cluster;
  std::erase_if(answering.hosts, [&](const cluster::RegisteredHost& host) {
    const auto seen = std::ranges::find(look.hosts, host.name, &SeenHost::name);
    return !seen->is_fit() && host.name != look.cluster.head().name;
  });
  const Json answer = site.ask_head(
      look.cluster.head(), Json::object({{"ask", "reach"}, {"cluster", cluster::to_json(answering)}}), kToReach);
  for (const Json& one : answer.at("failed").as_array()) {
    look.unreached[one.at("host").as_string()] = one.at("why").as_string();
  }
  return look;
}

}  // namespace dtrain::cli
