#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/elastic/host_file.hpp>
#include <dtrain/elastic/records.hpp>

#include "cli/command.hpp"
#include "config/job_options.hpp"
#include "job/logs/job_life.hpp"
#include "job/logs/log_merge.hpp"
#include "since_time.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kPause = 100ms;
constexpr std::size_t kManyBytes = 1 << 20;

struct TailCommand {
  job::JobFolder job{"."};
  std::optional<int> rank;
  std::string host, since, grep;
  bool no_follow = false;
};

void bind(config::OptionSet& set, TailCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
  set.group("Options");
  // `dtrain launch` sets DTRAIN_RANK and DTRAIN_HOST for its programs, which may call this command.
  set.add("--rank", options.rank, "R", "show only lines of the worker that had rank R at that time",
          config::at_least(0))
      .flag_only = true;
  config::Option& host =
      set.add("--host", options.host, "HOST", "show only the workers and the preparation of this host");
  host.offers = config::Offers::hosts;
  host.flag_only = true;
  set.add("--since", options.since, "TIME",
          "show only lines written later: since 90s, 10m, 2h or 1d ago, or since 2026-01-31T12:00:00Z");
  set.add("--grep", options.grep, "PATTERN", "show only lines that match this extended regular expression");
  set.add("--no-follow", options.no_follow,
          "print the existing lines and exit, instead of following until the job ends");
}

// Writes a time as the logs do, so that both compare as texts.
std::string since_text(const std::string& text) {
  return text.empty() ? text : elastic::format_time(since_time(text, std::chrono::system_clock::now(), "--since"));
}

job::LogChoice choice_of(const TailCommand& options) {
  job::LogChoice choice{.rank = options.rank, .host = options.host, .since = since_text(options.since)};
  if (!options.grep.empty()) choice.pattern = std::make_unique<job::LinePattern>(options.grep);
  return choice;
}

Json line_json(const job::LogSource& line) {
  return Json::object({{"schema", "dtrain.log/1"},
                       {"time", line.time().empty() ? Json() : Json(line.time())},
                       {"source", line.name()},
                       {"host", line.host().empty() ? Json() : Json(line.host())},
                       {"slot", line.slot() < 0 ? Json() : Json(line.slot())},
                       {"rank", line.rank() < 0 ? Json() : Json(line.rank())},
                       {"line", line.line()}});
}

class Printer {
 public:
  explicit Printer(Reporter& reporter) : reporter_(reporter) {}
  void add(const job::LogSource& line) {
    if (reporter_.json()) {
      text_ += line_json(line).dump();
    } else {
      fmt::format_to(std::back_inserter(text_), "[{}] {}", line.name(), line.line());
    }
    text_ += '\n';
    if (text_.size() >= kManyBytes) flush();
  }
  void flush() {
    if (text_.empty()) return;
    text_.pop_back();  // answer() adds one
    reporter_.answer(text_);
    reporter_.finish();
    text_.clear();
  }

 private:
  Reporter& reporter_;
  std::string text_;
};

void expect_logs(const job::JobFolder& job) {
  if (is_listed(job.logs()) || is_listed(job.coordinator())) return;
  throw UsageError(fmt::format("{}: no job in this folder", job.path.string()),
                   "give --job-dir the folder that was given to `dtrain train --job-dir`");
}

void refuse_unknown_rank(const TailCommand& options, const std::set<int>& ranks) {
  if (!options.rank || ranks.contains(*options.rank)) return;
  const std::string of_host = options.host.empty() ? "" : " of " + options.host;
  if (ranks.empty()) {
    throw UsageError(fmt::format("--rank: no log{} says the rank of a worker", of_host),
                     "leave --rank out; a worker has a rank once it has started");
  }
  const std::string known =
      ranks.size() == 1 ? fmt::format("{}", *ranks.begin()) : fmt::format("{} to {}", *ranks.begin(), *ranks.rbegin());
  throw UsageError(fmt::format("--rank: no worker{} had rank {}", of_host, *options.rank),
                   fmt::format("ranks{} are {}", of_host, known));
}

// Hosts of the job that have no log yet are known too. Before the first log and the first list, none is.
void refuse_unknown_host(const TailCommand& options, std::set<std::string> known) {
  if (options.host.empty() || known.contains(options.host)) return;
  if (file_exists(options.job.hosts())) {
    for (const elastic::HostLine& host : elastic::parse_host_file(read_file(options.job.hosts())).hosts)
      known.insert(host.name);
  }
  if (known.empty() || known.contains(options.host)) return;
  throw UsageError(fmt::format("--host: no log in {} is of {}", options.job.logs().string(), options.host),
                   fmt::format("hosts are {}", fmt::join(known, ", ")));
}

ExitCode act(const TailCommand& options, const config::OptionSet&, Reporter& reporter) {
  expect_logs(options.job);
  job::LogMerge logs(options.job.logs(), choice_of(options));
  Printer printer(reporter);
  job::JobLife life(options.job);
  const auto show = [&] {
    const bool any = logs.poll([&](const job::LogSource& line) { printer.add(line); });
    printer.flush();
    return any;
  };
  show();
  refuse_unknown_host(options, logs.hosts());
  while (!options.no_follow && life.goes_on()) {
    if (!show()) std::this_thread::sleep_for(kPause);
  }
  show();
  if (life.is_over()) {
    logs.end();
    show();
  }
  refuse_unknown_host(options, logs.hosts());
  refuse_unknown_rank(options, logs.ranks());
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_tail_logs() {
  auto command = make_command<TailCommand>("tail-logs", "print the merged logs of all workers until the job ends", act);
  command->examples = {"dtrain tail-logs --job-dir job", "dtrain tail-logs --job-dir job --rank 0 --since 10m",
                       "dtrain tail-logs --job-dir job --host w3 --grep 'error|warning' --no-follow --json"};
  command->see_also = {"events", "hosts list", "train"};
  return command;
}

}  // namespace dtrain::cli
