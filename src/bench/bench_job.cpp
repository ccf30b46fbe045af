#include "bench_job.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/records.hpp>

#include "job/spec/job_client.hpp"

namespace dtrain::bench {
namespace {

using namespace std::chrono_literals;
constexpr auto kLook = 20ms;
constexpr auto kLongest = 120s;
constexpr std::size_t kLastWords = 1000;  // characters of the job's output in an error

}  // namespace

BenchJob::BenchJob(const Path& folder, std::vector<std::string> arguments) : folder_(folder), files_{folder / "job"} {
  make_folder(folder_);
  const FileDescriptor out = open_log(folder_ / "out"), err = open_log(folder_ / "err");
  Spawn child = spawn_of(own_command());
  child.arguments.insert(child.arguments.end(), {"train", "--json", "--job-dir", files_.path.string()});
  child.arguments.insert(child.arguments.end(), arguments.begin(), arguments.end());
  child.environment = own_environment();
  child.output = out.get();
  child.error = err.get();
  child.death_signal = SIGTERM;
  process_ = spawn(child);
}

BenchJob::~BenchJob() {
  kill_tree(process_);
  wait_for_end(process_);
}

bool BenchJob::has_ended() const { return dtrain::has_ended(process_); }

std::string BenchJob::said() const {
  const std::string text = read_file(folder_ / "err");
  return text.size() > kLastWords ? text.substr(text.size() - kLastWords) : text;
}

std::string BenchJob::last_error() const {
  std::string text = said();
  const std::size_t begin = text.rfind("{\"error\":");
  if (begin == text.npos) return text;
  const Json line = Json::parse(text.substr(begin, text.find('\n', begin) - begin), "the job's error");
  const Json& error = line.at("error");
  const std::string& hint = error.at("hint").as_string();
  return error.at("message").as_string() + (hint.empty() ? "" : fmt::format(" ({})", hint));
}

std::vector<double> BenchJob::step_seconds() const {
  std::vector<double> seconds;
  for (const std::string& line : split(read_file(folder_ / "out"), '\n')) {
    if (!line.ends_with('}')) continue;
    const Json event = Json::parse(line, "the job's output");
    if (event_kind(event) == EventKind::step) seconds.push_back(event.at("seconds").as_number());
  }
  return seconds;
}

std::vector<Json> BenchJob::events(EventKind kind) const {
  std::vector<Json> found;
  for (Json& event : elastic::read_events(files_.events())) {
    if (event_kind(event) == kind) found.push_back(std::move(event));
  }
  return found;
}

std::vector<std::pair<std::string, std::int64_t>> BenchJob::workers() const {
  std::vector<std::pair<std::string, std::int64_t>> members;
  const Json document = job::ask_coordinator(files_, Json::object({{"ask", "list"}}));
  for (const Json& host : document.at("hosts").as_array()) {
    if (host.at("ranks").as_array().empty()) continue;
    members.emplace_back(host.at("name").as_string(), host.at("pids").as_array().at(0).as_integer());
  }
  return members;
}

void BenchJob::wait_until(const std::function<bool()>& condition, const std::string& what,
                          std::chrono::duration<double> usual) const {
  const auto end = std::chrono::steady_clock::now() + usual + kLongest;
  while (!condition()) {
    if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped by a signal while measuring");
    if (has_ended()) throw Error(fmt::format("the measured job ended early: {}", last_error()));
    if (std::chrono::steady_clock::now() > end) throw Error(fmt::format("the measured job did not {}", what), said());
    std::this_thread::sleep_for(kLook);
  }
}

void BenchJob::wait_steps(std::size_t more) const {
  const std::size_t wanted = step_seconds().size() + more;
  wait_until([&] { return step_seconds().size() >= wanted; }, fmt::format("do {} more steps", more));
}

void BenchJob::run_for(std::chrono::duration<double> time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  wait_until([&] { return std::chrono::steady_clock::now() >= end; }, "run for its time", time);
}

}  // namespace dtrain::bench
