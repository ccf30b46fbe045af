#include "registered_changes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

#include "admission.hpp"
#include "cli/commands/cluster/cluster_cloud.hpp"
#include "host_words.hpp"
#include "registered_look.hpp"
#include "registered_ssh.hpp"

namespace dtrain::cli {
namespace {

using cluster::RegisteredCluster;
using cluster::RegisteredHost;
// A job may take as long to let a host go, and as long to save its last checkpoint.
constexpr std::chrono::seconds kToChange{330};
// The end of the queue's jobs, of the job in the shared folder and of the runner, one after the other, each have a
// limit of their own on the head.
constexpr std::chrono::seconds kToEnd{600};

RegisteredLook require_head(const RegisteredCluster& known, Reporter& reporter) {
  RegisteredLook look = ask_registered(known, reporter);
  if (look.unknown.empty()) return look;
  throw RemoteError(
      look.unknown,
      fmt::format("the head keeps the cluster; where it is lost, `dtrain cluster register {} --head HOST` "
                  "with the same host file makes another host the head",
                  known.name));
}

// Remembers the cluster as it is now. Returns the notes of the head.
std::vector<std::string> take_answer(const Json& answer, Reporter& reporter) {
  const auto cluster = cluster::registered_cluster_from(answer.at("cluster"), "the answer of the head");
  cluster::remember(cluster);
  renew_ssh_names(cluster, reporter);
  std::vector<std::string> notes;
  for (const Json& note : answer.at("notes").as_array()) {
    notes.push_back(note.as_string());
    reporter.note(note.as_string());
  }
  return notes;
}

std::vector<std::string> names_of(const std::vector<RegisteredHost>& hosts) {
  std::vector<std::string> names;
  for (const RegisteredHost& host : hosts) names.push_back(host.name);
  return names;
}

std::string key_of(Site& site, const RegisteredCluster& cluster) {
  if (!cluster.own_key) return {};
  return site.ask_head(cluster.head(), Json::object({{"ask", "key"}, {"cluster", cluster::to_json(cluster)}}))
      .at("key")
      .as_string();
}

// Hosts that do not answer keep a line in authorized_keys for a key that is no longer there.
ExitCode dismiss(Site& site, const RegisteredCluster& cluster, const std::vector<RegisteredHost>& hosts,
                 const std::string& key, Reporter& reporter) {
  const std::string unfit = unfit_text(site.tell("leave", cluster, hosts, key));
  if (unfit.empty()) return ExitCode::ok;
  reporter.warn(fmt::format("not told: {}", unfit));
  if (!key.empty()) {
    reporter.note(fmt::format("there, the line `dtrain cluster {}` of ~/.ssh/authorized_keys can be removed by hand",
                              cluster.name));
  }
  return ExitCode::partly_done;
}

std::string question_of(const RegisteredLook& look) {
  std::size_t open = 0;
  for (const Json& job : look.jobs.as_array()) open += job.at("over").as_bool() ? 0 : 1;
  return fmt::format("cluster {}: end {} on {}, and forget the cluster? The machines stay on", look.cluster.name,
                     count_text(open, "job"), count_text(look.cluster.hosts.size(), "host"));
}

}  // namespace

ExitCode add_hosts(const RegisteredCluster& known, const std::string& words, const std::string& prices, bool yes,
                   Reporter& reporter) {
  std::vector<RegisteredHost> fresh = hosts_in_words(words);
  give_prices(prices.empty() ? HostPrices{} : prices_from(prices), fresh);
  refuse_hosts_of_others(known.name, fresh);
  const RegisteredLook look = require_head(known, reporter);
  for (const RegisteredHost& host : fresh) {
    if (!look.cluster.find(host.name)) continue;
    throw UsageError(fmt::format("{} is a host of cluster {} already", host.name, known.name),
                     fmt::format("dtrain cluster status {} lists its hosts", known.name));
  }
  Site site(known.name, reporter);
  RegisteredCluster wanted = look.cluster;
  wanted.hosts.insert(wanted.hosts.end(), fresh.begin(), fresh.end());
  Admission admission(site, wanted, yes, reporter);
  admission.place();
  admission.admit(fresh);
  RegisteredCluster more = admission.cluster();
  more.hosts = fresh;
  const Json answer = site.ask_head(
      known.head(), Json::object({{"ask", "add"}, {"name", known.name}, {"cluster", cluster::to_json(more)}}),
      kToChange);
  const std::vector<std::string> notes = take_answer(answer, reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.registered-add/1"},
                                       {"cluster", known.name},
                                       {"hosts", json_texts(names_of(fresh))},
                                       {"notes", json_texts(notes)}}));
  } else {
    reporter.answer(fmt::format("{} {} cluster {}", join(names_of(fresh), ", "),
                                fresh.size() == 1 ? "is a host of" : "are hosts of", known.name));
  }
  return ExitCode::ok;
}

ExitCode remove_host(const RegisteredCluster& known, const std::string& host, bool by_force, Reporter& reporter) {
  const RegisteredLook look = require_head(known, reporter);
  const RegisteredHost* found = look.cluster.find(host);
  if (!found) {
    const auto near = nearest_name(host, names_of(look.cluster.hosts));
    throw UsageError(fmt::format("cluster {} has no host {}", known.name, host),
                     near ? fmt::format("did you mean {}?", *near)
                          : fmt::format("dtrain cluster status {} lists its hosts", known.name));
  }
  Site site(known.name, reporter);
  const Json answer = site.ask_head(
      known.head(), Json::object({{"ask", "remove"}, {"name", known.name}, {"host", host}, {"force", by_force}}),
      kToChange);
  const std::vector<std::string> notes = take_answer(answer, reporter);
  const ExitCode code = dismiss(site, look.cluster, {*found}, key_of(site, look.cluster), reporter);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.registered-remove/1"},
                                       {"cluster", known.name},
                                       {"host", host},
                                       {"notes", json_texts(notes)}}));
  } else {
    reporter.answer(fmt::format("{} is no host of cluster {} any more; the machine stays on", host, known.name));
  }
  return code;
}

// A head that does not answer cannot be told: the cluster is then forgotten here, and the head, if it lives, goes on.
// One that answers and has not ended the jobs keeps the cluster here too, so that `down` can be run again.
ExitCode take_down(const RegisteredCluster& known, bool yes, Reporter& reporter) {
  const RegisteredLook look = ask_registered(known, reporter);
  if (!yes) require_consent(false, question_of(look), reporter);
  Site site(known.name, reporter);
  std::vector<std::string> ended;
  ExitCode code = ExitCode::ok;
  try {
    const std::string key = key_of(site, look.cluster);
    const Json answer = site.ask_head(known.head(), Json::object({{"ask", "end"}, {"name", known.name}}), kToEnd);
    for (const Json& job : answer.at("jobs").as_array()) ended.push_back(std::to_string(job.as_integer()));
    if (const Json* left = answer.find("left_in_crontab"); left && !left->as_string().empty()) {
      reporter.warn(fmt::format("the crontab of the head still starts the queue at its boot: {}", left->as_string()));
    }
    code = dismiss(site, look.cluster, look.cluster.hosts, key, reporter);
  } catch (const RemoteError& error) {
    if (look.answers) throw;
    reporter.warn(error.what());
    reporter.warn(
        fmt::format("cluster {} is forgotten here alone: its head could not be told, and goes on with its "
                    "jobs if it lives; `dtrain cluster register` with the same host file finds it again",
                    known.name));
    code = ExitCode::partly_done;
  }
  cluster::remove_ssh_entries(known.name, reporter);
  cluster::forget(known.name);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.registered-down/1"},
                                       {"cluster", known.name},
                                       {"ended_jobs", json_texts(ended)},
                                       {"head_told", code == ExitCode::ok}}));
    return code;
  }
  if (!ended.empty()) reporter.answer(fmt::format("ended job {}", join(ended, ", ")));
  reporter.answer(fmt::format("cluster {} is forgotten; its machines stay on, and the files of its jobs stay in {}",
                              known.name, look.cluster.folder));
  return code;
}

}  // namespace dtrain::cli
