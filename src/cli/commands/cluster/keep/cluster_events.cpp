#include <fmt/format.h>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/wish.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"
#include "commands.hpp"

namespace dtrain::cli {
namespace {

struct EventsCommand {
  config::ClusterPlace place;
};

void bind(config::OptionSet& set, EventsCommand& options) { config::bind_cluster(set, options.place); }

Json document(const cluster::Fleet& fleet, const std::optional<cluster::Wish>& wish, const cluster::Lease& lease) {
  Json events = Json::array();
  for (const cluster::HealEvent& one : cluster::tagged_events(fleet)) {
    events.push_back(Json::object({{"time", utc_text(one.at)}, {"text", one.text}}));
  }
  const Json wanted = wish ? Json::object({{"base", wish->base}, {"added", wish->elastic}}) : Json();
  const Json keeper =
      lease.holder.empty() ? Json() : Json::object({{"holder", lease.holder}, {"last_seen", utc_text(lease.at)}});
  return Json::object({{"schema", "dtrain.cluster-events/1"},
                       {"cluster", fleet.name},
                       {"wanted_workers", wanted},
                       {"workers", fleet.counted_workers()},
                       {"keeper", keeper},
                       {"events", events}});
}

void answer_lines(const cluster::Fleet& fleet, const std::optional<cluster::Wish>& wish, const cluster::Lease& lease,
                  Reporter& reporter) {
  if (wish) {
    reporter.note(fmt::format("wanted: {} ({} of `up`, {} of `add`); there: {}", count_text(wish->workers(), "worker"),
                              wish->base, wish->elastic, fleet.counted_workers()));
  }
  reporter.note(lease.holder.empty()
                    ? fmt::format("it is not kept: dtrain cluster watch {} --heal keeps it", fleet.name)
                    : fmt::format("{} keeps it, last seen {}", lease.holder, utc_text(lease.at)));
  const std::vector<cluster::HealEvent> events = cluster::tagged_events(fleet);
  for (const cluster::HealEvent& one : events) reporter.answer(fmt::format("{}  {}", utc_text(one.at), one.text));
  if (events.empty()) reporter.answer("nothing was done for the cluster yet");
}

ExitCode act(const EventsCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  require_there(fleet, cloud.aws());
  const std::optional<cluster::Wish> wish = cluster::tagged_wish(fleet);
  const cluster::Lease lease = cluster::tagged_lease(fleet);
  if (reporter.json()) {
    reporter.answer_json(document(fleet, wish, lease));
  } else {
    answer_lines(fleet, wish, lease, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_events() {
  auto command = make_command<EventsCommand>("cluster events",
                                             "show the last repairs (`--heal`) of a cluster and their reasons", act);
  command->examples = {"dtrain cluster events demo", "dtrain cluster events demo --json"};
  command->see_also = {"cluster watch", "cluster status", "cluster health"};
  return command;
}

}  // namespace dtrain::cli
