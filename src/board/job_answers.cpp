#include "job_answers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/net/ssh.hpp>

#include "explain.hpp"
#include "job/queue/job_queue.hpp"
#include "job/spec/job_client.hpp"
#include "run.hpp"

namespace dtrain::board {
namespace {

constexpr const char* kReason = "requested on the board";

job::JobFolder job_in(const std::string& folder) {
  if (net::is_s3_url(folder))
    throw UsageError(fmt::format("{}: a job is asked through a folder, not an object", folder));
  return {folder};
}

// A link in a folder that another user fills may lead to a job of this user, who would act on that one.
bool is_link(const Path& path) {
  std::error_code unknown;
  return std::filesystem::is_symlink(path, unknown);
}

// Also where the ledger itself is one.
bool holds_links(const Path& ledger) {
  std::error_code unknown;
  bool found = is_link(ledger);
  for (std::filesystem::directory_iterator entry(ledger, unknown), end; !unknown && entry != end && !found;
       entry.increment(unknown))
    found = entry->is_symlink(unknown);
  return found;
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

// The ids of an epoch, ascending: as many as it has samples, and none twice. Without copies they are 0 to samples - 1.
bool each_once(const std::vector<std::uint32_t>& ids, std::uint64_t samples, SampleIds kind) {
  const bool are_different = ids.size() == samples && std::ranges::adjacent_find(ids) == ids.end() && !ids.empty();
  return are_different && (kind == SampleIds::copies || std::uint64_t{ids.back()} + 1 == samples);
}

// The coordinator's hint names an option of its command line, which the page does not have. `action`: "drain",
// "remove".
UsageError for_the_page(const UsageError& refusal, const job::JobFolder& job, const std::string& action,
                        const std::string& host) {
  if (refusal.hint().find("setting 'yes'") == std::string::npos) return refusal;
  return UsageError(
      refusal.what(),
      fmt::format("add hosts first; `{}` {}s it all the same",
                  job.command(fmt::format("hosts {} {} --yes", action, net::shell_quoted(host))), action));
}

void drain(const job::JobFolder& job, const std::string& host) {
  try {
    job::ask_coordinator(job,
                         Json::object({{"ask", "drain"}, {"host", host}, {"reason", kReason}, {"any_number", false}}));
  } catch (const UsageError& refusal) {
    throw for_the_page(refusal, job, "drain", host);
  }
}

std::vector<std::string> remove_host(const job::JobFolder& job, const std::string& host) {
  try {
    return job::edit_hosts(job, {.remove = {host}, .keep_enough = true});
  } catch (const UsageError& refusal) {
    throw for_the_page(refusal, job, "remove", host);
  }
}

}  // namespace

Json live_hosts(const std::string& folder) {
  Json silent = Json::object({{"running", false}});
  if (net::is_s3_url(folder)) return silent;
  const job::JobFolder job = job_in(folder);
  if (is_link(job.coordinator())) return silent;
  try {
    const auto coordinator = job::read_coordinator(job);
    if (!coordinator || coordinator->over()) return silent;
    return live_answer(job::ask_coordinator(job, Json::object({{"ask", "list"}})), folder);
  } catch (const Error& error) {
    silent["reason"] = error.what();
    return silent;
  }
}

Json live_answer(const Json& list, const std::string& folder) {
  Json answer = job::list_for_user(list, {folder});
  Json hosts = Json::array();
  for (const Json& host : answer.at("hosts").as_array()) hosts.push_back(with_waiting(host));
  answer["hosts"] = std::move(hosts);
  if (member_number(answer, "goodput_percent") <= 0) answer["goodput_percent"] = Json();
  answer["running"] = true;
  return answer;
}

SampleIds sample_ids_of(std::string_view settings) {
  const bool has_copies = configured(settings, "balanced-sampler") == "true" ||
                          parse_integer(configured(settings, "repeated-augment")).value_or(1) > 1;
  return has_copies ? SampleIds::copies : SampleIds::records;
}

Json ledger_check(const std::string& folder, std::string_view settings) {
  const job::JobFolder job = job_in(folder);
  if (!file_exists(job.ledger()) || holds_links(job.ledger())) return Json::object({{"recorded", false}});
  return ledger_verdict([&] { return train::read_ledger(job.ledger()); }, sample_ids_of(settings));
}

Json ledger_verdict(const std::function<train::Ledger()>& read, SampleIds kind) {
  train::Ledger ledger = read();
  const std::uint32_t last = ledger.steps.empty() ? 0 : ledger.steps.rbegin()->first.first;
  const std::uint32_t first = ledger.steps.empty() ? 1 : ledger.steps.begin()->first.first;
  const auto is_complete = [&](std::uint32_t epoch) { return each_once(ledger.epoch(epoch), ledger.samples, kind); };
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
  return Json::object({{"recorded", true},
                       {"checked", kind == SampleIds::copies ? "copies" : "records"},
                       {"steps", std::uint64_t{ledger.steps.size()}},
                       {"epochs", epochs}});
}

Json act_on_job(const std::string& folder, const std::string& request) {
  const job::JobFolder job = job_in(folder);
  const Json wish = Json::parse(request, "the request");
  const std::string action = member_text(wish, "action"), host = member_text(wish, "host");
  std::vector<std::string> problems;  // that the coordinator found in host_worker
  if (action != "stop" && host.empty()) throw UsageError("name a host");
  if (is_link(job.coordinator()))
    throw UsageError(fmt::format("{}: is a link, which the board does not follow", job.coordinator().string()),
                     "`dtrain stop` and `dtrain hosts` act on the job of a folder");
  if (host.find_first_of("\n\r#") != host.npos) throw UsageError(fmt::format("{}: no line of a host file", host));
  if (action == "stop") {
    stop_for_good(job);
  } else if (action == "drain") {
    drain(job, host);
  } else if (action == "add") {
    problems = job::edit_hosts(job, {.add = {host}});
  } else if (action == "remove") {
    problems = remove_host(job, host);
  } else {
    throw UsageError(fmt::format("{}: none of stop, drain, add and remove", action));
  }
  return Json::object({{"done", action}, {"host", host}, {"problems", json_texts(problems)}});
}

}  // namespace dtrain::board
