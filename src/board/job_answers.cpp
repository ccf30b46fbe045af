#include "job_answers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/net/objects.hpp>

#include "explain.hpp"
#include "job/queue/job_queue.hpp"
#include "job/spec/job_client.hpp"

namespace dtrain::board {
namespace {

constexpr const char* kReason = "requested on the board";

job::JobFolder job_in(const std::string& folder) {
  if (net::is_s3_url(folder))
    throw UsageError(fmt::format("{}: a job is asked through a folder, not an object", folder));
  return {folder};
}

// The share of its steps in which a worker waits for the others.
void add_waiting(Json& worker) {
  const double step = member_number(worker, "step_seconds"), compute = member_number(worker, "compute_seconds");
  worker["waiting"] = step > 0 ? Json(std::clamp(1 - compute / step, 0.0, 1.0)) : Json();
}

Json with_waiting(const Json& host) {
  Json copy = host;
  Json workers = Json::array();
  for (Json worker : host.at("workers").as_array()) {
    add_waiting(worker);
    workers.push_back(std::move(worker));
  }
  copy["workers"] = std::move(workers);
  return copy;
}

// Its queue would start a job again, however this attempt ends, so that it is cancelled there as well.
void stop_for_good(const job::JobFolder& job) {
  std::optional<job::OpenJob> queued = job::open_job_of(job);
  if (queued) queued->queue.cancel(queued->number, false);
  try {
    job::ask_to_stop(job, kReason, false);
  } catch (const Error&) {
    // The runner of the queue ends an attempt that runs, and no other begins.
    const bool is_final =
        queued && (queued->queue.has_runner() || !job::is_held(queued->queue.at(queued->number).attempt_lock()));
    if (!is_final) throw;
  }
}

bool each_once(const std::vector<std::uint32_t>& ids, std::uint64_t samples) {
  return ids.size() == samples && std::ranges::adjacent_find(ids) == ids.end() && !ids.empty() &&
         ids.back() + 1 == samples;
}

}  // namespace

Json live_hosts(const std::string& folder) {
  Json silent = Json::object({{"running", false}});
  if (net::is_s3_url(folder)) return silent;
  const job::JobFolder job = job_in(folder);
  try {
    const auto coordinator = job::read_coordinator(job);
    if (!coordinator || coordinator->over()) return silent;
    Json answer = job::ask_coordinator(job, Json::object({{"ask", "list"}}));
    Json hosts = Json::array();
    for (const Json& host : answer.at("hosts").as_array()) hosts.push_back(with_waiting(host));
    answer["hosts"] = std::move(hosts);
    answer["running"] = true;
    return answer;
  } catch (const Error& error) {
    silent["reason"] = error.what();
    return silent;
  }
}

Json ledger_check(const std::string& folder) {
  const job::JobFolder job = job_in(folder);
  if (!file_exists(job.ledger())) return Json::object({{"recorded", false}});
  return ledger_verdict([&] { return train::read_ledger(job.ledger()); });
}

Json ledger_verdict(const std::function<train::Ledger()>& read) {
  train::Ledger ledger = read();
  const std::uint32_t last = ledger.steps.empty() ? 0 : ledger.steps.rbegin()->first.first;
  const std::uint32_t first = ledger.steps.empty() ? 1 : ledger.steps.begin()->first.first;
  const auto is_complete = [&](std::uint32_t epoch) { return each_once(ledger.epoch(epoch), ledger.samples); };
  // The files of the workers are read one after the other while they grow. An epoch that one worker has left is whole
  // in all files by now.
  for (std::uint32_t epoch = first; epoch < last; ++epoch) {
    if (is_complete(epoch)) continue;
    ledger = read();
    break;
  }
  Json epochs = Json::array();
  for (std::uint32_t epoch = first; epoch <= last; ++epoch) {
    const std::uint64_t samples = ledger.epoch(epoch).size();
    epochs.push_back(Json::object({{"epoch", epoch + 1},
                                   {"samples", samples},
                                   {"expected", ledger.samples},
                                   {"unfinished", epoch == last && samples < ledger.samples},
                                   {"complete", is_complete(epoch)}}));
  }
  return Json::object({{"recorded", true}, {"steps", std::uint64_t{ledger.steps.size()}}, {"epochs", epochs}});
}

Json act_on_job(const std::string& folder, const std::string& request) {
  const job::JobFolder job = job_in(folder);
  const Json wish = Json::parse(request, "the request");
  const std::string action = member_text(wish, "action"), host = member_text(wish, "host");
  std::vector<std::string> problems;  // that the coordinator found in host_worker
  if (action != "stop" && host.empty()) throw UsageError("name a host");
  if (host.find_first_of("\n\r#") != host.npos) throw UsageError(fmt::format("{}: no line of a host file", host));
  if (action == "stop") {
    stop_for_good(job);
  } else if (action == "drain") {
    job::ask_coordinator(job, Json::object({{"ask", "drain"}, {"host", host}, {"reason", kReason}}));
  } else if (action == "add") {
    problems = job::edit_hosts(job, {.add = {host}});
  } else if (action == "remove") {
    problems = job::edit_hosts(job, {.remove = {host}});
  } else {
    throw UsageError(fmt::format("{}: none of stop, drain, add and remove", action));
  }
  return Json::object({{"done", action}, {"host", host}, {"problems", json_texts(problems)}});
}

}  // namespace dtrain::board
