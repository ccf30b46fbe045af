#include "registered_views.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/provider.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"
#include "cli/commands/cluster/keep/cluster_budget.hpp"
#include "cli/table.hpp"
#include "job/queue/managed_job.hpp"
#include "registered_look.hpp"

namespace dtrain::cli {
namespace {

using cluster::RegisteredCluster;
using cluster::RegisteredHost;

std::string hourly_text(const RegisteredHost& host) {
  return host.hourly ? fmt::format("${:.3f} an hour", *host.hourly) : "price unknown";
}

// "$1.25 an hour, at least $4.10 so far (the price of h3 is unknown)"
std::string cost_line(const RegisteredCluster& cluster) {
  const cluster::Spending spent = cluster::spending_of(cluster, unix_now());
  const std::string hourly = cost_text(cluster::hourly_cost(cluster)) + " an hour";
  if (spent.unpriced.empty()) return fmt::format("{}, ${:.2f} so far", hourly, spent.dollars);
  return spent.dollars > 0 ? fmt::format("{}, at least ${:.2f} so far", hourly, spent.dollars) : hourly;
}

Json so_far(const cluster::Spending& spent) {
  return spent.dollars > 0 || spent.unpriced.empty() ? Json(spent.dollars) : Json();
}

BudgetView budget_of(const RegisteredCluster& cluster) {
  return {.budget = cluster.budget,
          .spending = cluster::spending_of(cluster, unix_now()),
          .hourly = cluster::hourly_cost(cluster)};
}

std::string gpu_text(const cluster::HostFacts& facts) {
  if (!facts.checkup.gpus.empty()) return std::to_string(facts.checkup.gpus.size());
  return facts.checkup.gpu_error.empty() ? "-" : "unknown";
}

// The jobs that are not over.
std::vector<const Json*> open_jobs(const RegisteredLook& look) {
  std::vector<const Json*> open;
  for (const Json& job : look.jobs.as_array()) {
    if (!job.at("over").as_bool()) open.push_back(&job);
  }
  return open;
}

const char* role_of(const RegisteredCluster& cluster, const RegisteredHost& host) {
  return host.name == cluster.head().name ? "head" : "worker";
}

Json host_json(const RegisteredCluster& cluster, const RegisteredHost& host, const SeenHost& seen) {
  Json json = Json::object({{"name", host.name},
                            {"role", role_of(cluster, host)},
                            {"answers", seen.is_fit()},
                            {"why", seen.why},
                            {"slots", host.slots},
                            {"dollars_per_hour", host.hourly ? Json(*host.hourly) : Json()}});
  if (!seen.is_fit()) return json;
  json["host_name"] = seen.facts->host_name;
  json["cpus"] = seen.facts->cpus;
  json["memory_bytes"] = seen.facts->memory;
  json["disk_free_bytes"] = seen.facts->disk_free;
  json["gpus"] = cluster::to_json(seen.facts->checkup);
  return json;
}

Json status_document(const RegisteredLook& look) {
  Json hosts = Json::array();
  for (std::size_t i = 0; i < look.hosts.size(); ++i) {
    hosts.push_back(host_json(look.cluster, look.cluster.hosts[i], look.hosts[i]));
  }
  return Json::object({{"schema", "dtrain.registered-status/1"},
                       {"cluster", look.cluster.name},
                       {"exists", true},
                       {"shared", look.cluster.shared},
                       {"queue", look.cluster.folder},
                       {"hosts", hosts},
                       {"head_unknown", look.unknown},
                       {"runner", look.unknown.empty() ? Json(look.runner) : Json()},
                       {"jobs", look.jobs},
                       {"dollars_per_hour", hourly_json(cluster::hourly_cost(look.cluster))},
                       {"unpriced", unpriced_json(cluster::hourly_cost(look.cluster))},
                       {"dollars_so_far", so_far(cluster::spending_of(look.cluster, unix_now()))},
                       {"budget", budget_json(budget_of(look.cluster))}});
}

void answer_status(const RegisteredLook& look, Reporter& reporter) {
  const RegisteredCluster& cluster = look.cluster;
  reporter.answer(fmt::format("cluster {}: {} in {}, {}", cluster.name,
                              count_text(cluster.hosts.size(), "registered host"), cluster.shared, cost_line(cluster)));
  for (const Json* job : open_jobs(look)) {
    reporter.answer(fmt::format("job {} is {}: {}", job->at("job").as_integer(), job->at("state").as_string(),
                                job->at("command").as_string()));
  }
  std::vector<std::vector<std::string>> rows{{"HOST", "ROLE", "STATE", "SLOTS", "CPUS", "GPUS", "DISK FREE", "COST"}};
  for (std::size_t i = 0; i < look.hosts.size(); ++i) {
    const RegisteredHost& host = cluster.hosts[i];
    const SeenHost& seen = look.hosts[i];
    std::vector<std::string> row{host.name, role_of(cluster, host), seen.is_fit() ? "ready" : "away",
                                 std::to_string(host.slots)};
    if (seen.is_fit()) {
      row.insert(row.end(),
                 {std::to_string(seen.facts->cpus), gpu_text(*seen.facts), format_bytes(seen.facts->disk_free)});
    } else {
      row.insert(row.end(), {"-", "-", "-"});
    }
    row.push_back(hourly_text(host));
    rows.push_back(std::move(row));
  }
  answer_rows(rows, reporter);
  for (const SeenHost& seen : look.hosts) {
    if (!seen.is_fit()) reporter.warn(fmt::format("{}: {}", seen.name, seen.why));
  }
}

void warn_of_head(const RegisteredLook& look, Reporter& reporter) {
  if (look.unknown.empty()) return;
  reporter.warn(fmt::format("the jobs, and changes by others, are unknown: {}", look.unknown));
}

std::vector<std::string> troubles_of(const RegisteredLook& look, std::size_t index) {
  const SeenHost& seen = look.hosts[index];
  std::vector<std::string> troubles;
  if (!seen.is_fit()) return {seen.why};
  const cluster::HostFacts& facts = *seen.facts;
  for (const std::string& trouble : cluster::troubles_of(facts.checkup, std::nullopt)) troubles.push_back(trouble);
  if (look.unknown.empty() && !facts.sees_shared) {
    troubles.push_back(fmt::format("it does not see the shared folder {}", look.cluster.shared));
  }
  const auto offset = look.offset_of(index);
  if (offset && offset->is_wrong()) {
    troubles.push_back(fmt::format("its clock is {:+.1f} s off the head's", offset->seconds));
  }
  if (const auto why = look.unreached.find(seen.name); why != look.unreached.end()) {
    troubles.push_back("the head cannot log in: " + why->second);
  }
  return troubles;
}

}  // namespace

ExitCode show_status(const RegisteredCluster& cluster, bool no_head, Reporter& reporter) {
  const RegisteredLook look = look_at_registered(cluster, no_head, false, reporter);
  if (reporter.json()) {
    reporter.answer_json(status_document(look));
  } else {
    answer_status(look, reporter);
    warn_of_head(look, reporter);
  }
  return ExitCode::ok;
}

ExitCode show_health(const RegisteredCluster& cluster, bool no_head, Reporter& reporter) {
  const RegisteredLook look = look_at_registered(cluster, no_head, true, reporter);
  Json hosts = Json::array();
  bool well = true;
  for (std::size_t i = 0; i < look.hosts.size(); ++i) {
    const std::vector<std::string> troubles = troubles_of(look, i);
    const auto offset = look.offset_of(i);
    well = well && troubles.empty();
    Json one = host_json(look.cluster, look.cluster.hosts[i], look.hosts[i]);
    one["well"] = troubles.empty();
    one["why"] = join(troubles, "; ");
    one["clock_offset_seconds"] = offset ? Json(offset->seconds) : Json();
    hosts.push_back(std::move(one));
    if (reporter.json()) continue;
    reporter.answer(fmt::format("{:<21}{:<10}{}", look.hosts[i].name, troubles.empty() ? "well" : "impaired",
                                offset ? fmt::format("clock {:+.3f} s", offset->seconds) : ""));
    for (const std::string& trouble : troubles) reporter.answer("    " + trouble);
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.registered-health/1"},
                                       {"cluster", look.cluster.name},
                                       {"well", well},
                                       {"head_unknown", look.unknown},
                                       {"hosts", hosts}}));
  } else {
    warn_of_head(look, reporter);
  }
  if (!well) return ExitCode::impaired;
  return look.unknown.empty() || no_head ? ExitCode::ok : ExitCode::partly_done;
}

// The folder of the job that runs, else of the last one, else the shared folder.
std::string job_folder_in(const RegisteredLook& look) {
  std::string folder = look.cluster.shared;
  for (const Json& job : look.jobs.as_array()) {
    const std::string& own = job.at("job_dir").as_string();
    if (!own.empty()) folder = own;
    if (job.at("state").as_string() == enum_name(job::kJobStateNames, job::JobState::running)) break;
  }
  return folder;
}

std::optional<board::Forecast> forecast_of_registered(const RegisteredLook& look, const ForecastChoice& choice) {
  require_forecast(choice);
  if (!choice.wanted) return std::nullopt;
  if (!look.unknown.empty()) throw RemoteError(look.unknown, "the head reads the records of its jobs; try again later");
  net::SshSession head = cluster::provider_of(look.cluster)->log_in(std::chrono::seconds(0));
  return forecast_on(head, choice.job_dir.empty() ? job_folder_in(look) : choice.job_dir);
}

ExitCode show_cost(const RegisteredCluster& known, const ForecastChoice& choice, Reporter& reporter) {
  const RegisteredLook look = ask_registered(known, reporter);
  const RegisteredCluster& cluster = look.cluster;
  const cluster::Cost cost = cluster::hourly_cost(cluster);
  const std::optional<board::Forecast> forecast = forecast_of_registered(look, choice);
  if (reporter.json()) {
    Json hosts = Json::array();
    for (const RegisteredHost& host : cluster.hosts) {
      hosts.push_back(Json::object({{"name", host.name},
                                    {"dollars_per_hour", host.hourly ? Json(*host.hourly) : Json()},
                                    {"hours", static_cast<double>((unix_now() - host.since).count()) / 3600}}));
    }
    reporter.answer_json(Json::object({{"schema", "dtrain.registered-cost/1"},
                                       {"cluster", cluster.name},
                                       {"head_unknown", look.unknown},
                                       {"dollars_per_hour", hourly_json(cost)},
                                       {"unpriced", unpriced_json(cost)},
                                       {"dollars_so_far", so_far(cluster::spending_of(cluster, unix_now()))},
                                       {"budget", budget_json(budget_of(cluster))},
                                       {"forecast", forecast ? forecast_json(*forecast, cost, false) : Json()},
                                       {"hosts", hosts}}));
    return look.unknown.empty() ? ExitCode::ok : ExitCode::partly_done;
  }
  for (const RegisteredHost& host : cluster.hosts) {
    reporter.answer(fmt::format("{:<21}{:>8.1f} h  {}", host.name,
                                static_cast<double>((unix_now() - host.since).count()) / 3600, hourly_text(host)));
  }
  reporter.answer(cost_line(cluster));
  if (cluster.budget) reporter.answer(budget_line(budget_of(cluster)));
  if (forecast) reporter.answer(forecast_line(*forecast, cost, false));
  reporter.note(
      "hours count from the registration of a host to its removal, at the price that was given; `dtrain cluster "
      "register` with the same host file and --price changes it");
  warn_of_head(look, reporter);
  return look.unknown.empty() ? ExitCode::ok : ExitCode::partly_done;
}

ExitCode show_events(const RegisteredCluster& known, Reporter& reporter) {
  const RegisteredLook look = ask_registered(known, reporter);
  if (!look.unknown.empty()) throw RemoteError(look.unknown, "the head keeps the events; try again once it answers");
  if (reporter.json()) {
    reporter.answer_json(Json::object(
        {{"schema", "dtrain.registered-events/1"}, {"cluster", look.cluster.name}, {"events", look.events}}));
    return ExitCode::ok;
  }
  for (const Json& event : look.events.as_array()) {
    reporter.answer(fmt::format("{}  {}", event.at("time").as_string(), event.at("event").as_string()));
  }
  return ExitCode::ok;
}

}  // namespace dtrain::cli
