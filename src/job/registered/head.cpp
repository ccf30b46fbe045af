#include "head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>

#include "at_boot.hpp"
#include "cluster_events.hpp"
#include "cluster_lock.hpp"
#include "job/queue/job_queue.hpp"
#include "preparation.hpp"
#include "running_jobs.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using cluster::RegisteredCluster;
using cluster::RegisteredHost;
constexpr auto kToSave = 120s, kToKill = 30s, kToEndRunner = 10s;

cluster::UnixTime unix_time() {
  return std::chrono::duration_cast<cluster::UnixTime>(std::chrono::system_clock::now().time_since_epoch());
}

// The cluster that this machine is the head of, for a change under the lock.
RegisteredCluster require_headed(const std::string& name) {
  auto cluster = cluster::headed_here(name);
  if (!cluster) {
    throw UsageError(fmt::format("this machine is not the head of a cluster {}", name),
                     "`dtrain cluster register` with the same host file registers it again");
  }
  if (!cluster->ends) return std::move(*cluster);
  throw UsageError(fmt::format("cluster {} is being taken down", name),
                   fmt::format("dtrain cluster down {} completes that", name));
}

// The cluster.

bool same_hosts(const RegisteredCluster& a, const RegisteredCluster& b) {
  return a.hosts.size() == b.hosts.size() &&
         std::ranges::all_of(a.hosts, [&](const RegisteredHost& host) { return b.find(host.name) != nullptr; });
}

void change_price(RegisteredCluster& cluster, RegisteredHost& host, double hourly) {
  const cluster::UnixTime now = unix_time();
  if (host.hourly && *host.hourly != hourly) {
    cluster.spent_by_others += *host.hourly * std::chrono::duration<double, std::ratio<3600>>(now - host.since).count();
    host.since = now;
  }
  host.hourly = hourly;
}

// Another head, where the one that was is lost. A head that lives runs the queue.
void change_head(RegisteredCluster& cluster, const std::string& head) {
  if (cluster.head().name == head) return;
  if (JobQueue(cluster.folder).has_runner()) {
    throw UsageError(fmt::format("{} is the head of cluster {}, and runs its queue", cluster.head().name, cluster.name),
                     fmt::format("leave setting 'head' out, or give {}", cluster.head().name));
  }
  const auto found = std::ranges::find(cluster.hosts, head, &RegisteredHost::name);
  std::rotate(cluster.hosts.begin(), found, found + 1);
}

// What the user says now, about a cluster that is there.
void take_over_wishes(const RegisteredCluster& asked, RegisteredCluster& there) {
  if (!same_hosts(asked, there)) {
    std::vector<std::string> names;
    for (const RegisteredHost& host : there.hosts) names.push_back(host.name);
    throw UsageError(fmt::format("cluster {} is registered with other hosts: {}", there.name, join(names, ", ")),
                     fmt::format("`dtrain cluster add {0}` and `remove {0}` change them; give the host file that "
                                 "lists these to use the cluster",
                                 there.name));
  }
  change_head(there, asked.head().name);
  for (RegisteredHost& host : there.hosts) {
    const RegisteredHost& now = *asked.find(host.name);
    host.slots = now.slots;
    if (now.hourly) change_price(there, host, *now.hourly);
  }
  if (asked.budget) there.budget = asked.budget;
  there.own_key = there.own_key || asked.own_key;
}

void require_prices(const RegisteredCluster& cluster) {
  const cluster::Cost cost = cluster::hourly_cost(cluster);
  if (!cluster.budget || cost.unpriced.empty()) return;
  throw UsageError(fmt::format("the price of {} is unknown, so a budget cannot be kept", join(cost.unpriced, ", ")),
                   "give setting 'price' for these hosts, or leave setting 'budget' out");
}

Json claim(RegisteredCluster asked, bool at_boot) {
  if (at_boot) require_cron(asked.name);
  require_own_folder(asked.folder);
  const FileLock lock = lock_cluster(asked.folder);
  auto there = cluster::read_cluster(asked.folder);
  const bool is_new = !there || there->ends;
  if (is_new) {
    for (RegisteredHost& host : asked.hosts) host.since = unix_time();
    there = std::move(asked);
  } else {
    take_over_wishes(asked, *there);
  }
  require_prices(*there);
  there->machine = host_name();
  cluster::write_cluster(*there);
  cluster::become_head(*there);
  if (is_new) {
    append_event(there->folder, fmt::format("registered with {}, {} is the head",
                                            count_text(there->hosts.size(), "host"), there->head().name));
  }
  keep_runner(*there);
  if (at_boot) start_queue_at_boot(*there);
  return Json::object({{"cluster", cluster::to_json(*there)}, {"is_new", is_new}});
}

Json describe(const std::string& name) {
  const RegisteredCluster cluster = require_headed(name);
  keep_runner(cluster);
  JobQueue queue(cluster.folder);
  Json jobs = Json::array();
  for (const QueuedJob& job : queue.read()) {
    const bool is_readable = job.spec.has_value();
    jobs.push_back(Json::object({{"job", job.number},
                                 {"state", is_readable ? enum_name(kJobStateNames, job.record.state) : "unreadable"},
                                 {"over", is_readable && job.record.is_over()},
                                 {"job_dir", is_readable ? job.job_folder().path.string() : ""},
                                 {"command", is_readable ? command_text(*job.spec) : ""}}));
  }
  return Json::object({{"cluster", cluster::to_json(cluster)},
                       {"runner", queue.has_runner()},
                       {"jobs", std::move(jobs)},
                       {"events", read_events(cluster.folder)},
                       {"time", std::int64_t{unix_time().count()}}});
}

Json strings(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(text);
  return json;
}

Json changed(const RegisteredCluster& cluster, const std::vector<std::string>& notes) {
  return Json::object({{"cluster", cluster::to_json(cluster)}, {"notes", strings(notes)}});
}

// `more`: hosts as a document of a cluster.
Json add(const std::string& name, const RegisteredCluster& more, Reporter& reporter) {
  std::vector<std::string> notes;
  RegisteredCluster cluster = require_headed(name);
  {
    const FileLock lock = lock_cluster(cluster.folder);
    cluster = require_headed(name);
    for (RegisteredHost host : more.hosts) {
      if (cluster.find(host.name)) continue;  // the same command again
      host.since = unix_time();
      append_event(cluster.folder, fmt::format("{} added", host.name));
      cluster.hosts.push_back(std::move(host));
    }
    cluster.own_key = cluster.own_key || more.own_key;
    require_prices(cluster);
    cluster::write_cluster(cluster);
  }
  for (const RunningJob& job : running_jobs(cluster)) {
    for (const RegisteredHost& host : more.hosts) {
      if (auto note = let_join(job, host, reporter)) notes.push_back(std::move(*note));
    }
  }
  return changed(cluster, notes);
}

Json remove(const std::string& name, const std::string& host_name, bool by_force) {
  std::vector<std::string> notes;
  const RegisteredCluster before = require_headed(name);
  if (before.head().name == host_name) {
    throw UsageError(fmt::format("{} is the head of cluster {}, which keeps its queue", host_name, name),
                     fmt::format("dtrain cluster down {} forgets the cluster", name));
  }
  for (const RunningJob& job : running_jobs(before)) {
    try {
      if (auto note = let_leave(job, host_name, by_force)) notes.push_back(std::move(*note));
    } catch (const Error& error) {
      if (!by_force) throw;
      notes.push_back(error.what());
    }
  }
  const FileLock lock = lock_cluster(before.folder);
  RegisteredCluster cluster = require_headed(name);
  if (const RegisteredHost* host = cluster.find(host_name)) {
    RegisteredCluster alone = cluster;
    alone.hosts = {*host}, alone.unpriced.clear(), alone.spent_by_others = 0;
    cluster.spent_by_others += cluster::spending_of(alone, unix_time()).dollars;
    if (!host->hourly) cluster.unpriced.push_back(host_name);
    std::erase_if(cluster.hosts, [&](const RegisteredHost& one) { return one.name == host_name; });
    cluster::write_cluster(cluster);
    append_event(cluster.folder, fmt::format("{} removed", host_name));
  }
  return changed(cluster, notes);
}

// The end.

std::vector<int> open_jobs(JobQueue& queue) {
  std::vector<int> open;
  for (const QueuedJob& job : queue.read()) {
    if (job.spec && !job.record.is_over()) open.push_back(job.number);
  }
  return open;
}

// With a checkpoint where there is time for one.
std::vector<int> end_jobs(const RegisteredCluster& cluster) {
  JobQueue queue(cluster.folder);
  std::vector<int> ended = open_jobs(queue);
  const auto are_over = [&] { return open_jobs(queue).empty(); };
  const auto cancel = [&](bool now) {
    for (const int number : open_jobs(queue)) queue.cancel(number, now);
  };
  cancel(false);
  if (wait_until(are_over, kToSave)) return ended;
  cancel(true);
  if (wait_until(are_over, kToKill)) return ended;
  throw Error(
      fmt::format("jobs of cluster {} have not ended", cluster.name),
      fmt::format("`dtrain jobs list --cluster {0}` shows them; run `dtrain cluster down {0}` again", cluster.name));
}

Json end(const std::string& name) {
  auto cluster = cluster::headed_here(name);
  if (!cluster) return Json::object({{"jobs", Json::array()}});
  keep_runner(*cluster);  // it ends the job that runs
  {
    const FileLock lock = lock_cluster(cluster->folder);
    cluster->ends = true;
    cluster::write_cluster(*cluster);
  }
  const std::vector<int> ended = end_jobs(*cluster);
  stop_attached_job(*cluster);
  Json jobs = Json::array();
  for (const int number : ended) jobs.push_back(number);
  const Path folder = cluster->folder;
  // Without cluster.json a second `down` finds nothing to end, so a kill in between must leave it to the last.
  const std::string left = forget_boot(name);
  std::error_code ignored;
  forget_key(folder);
  for (const char* file : {"hosts", kClusterLock, "cluster.json"}) std::filesystem::remove(folder / file, ignored);
  cluster::leave_headship(name);
  wait_until([&] { return !JobQueue(folder).has_runner(); }, kToEndRunner);
  return Json::object({{"jobs", std::move(jobs)}, {"left_in_crontab", left}});
}

RegisteredCluster cluster_in(const Json& question) {
  return cluster::registered_cluster_from(question.at("cluster"), "the question");
}

}  // namespace

std::optional<Json> answer_as_head(const Json& question, Reporter& reporter) {
  const std::string& ask = question.at("ask").as_string();
  if (ask == "place") return answer_place(question);
  if (ask == "unplace") return answer_unplace(question);
  if (ask == "reach") return answer_reach(cluster_in(question));
  if (ask == "key") return answer_key(cluster_in(question));
  if (ask == "claim") {
    const Json* at_boot = question.find("at_boot");
    return claim(cluster_in(question), at_boot && at_boot->as_bool());
  }
  const Json* name = question.find("name");
  if (!name) return std::nullopt;
  if (ask == "describe") return describe(name->as_string());
  if (ask == "add") return add(name->as_string(), cluster_in(question), reporter);
  if (ask == "remove") {
    return remove(name->as_string(), question.at("host").as_string(), question.at("force").as_bool());
  }
  if (ask == "end") return end(name->as_string());
  return std::nullopt;
}

}  // namespace dtrain::job
