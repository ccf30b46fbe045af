#include "cluster_watch.hpp"

#include <array>
#include <chrono>
#include <csignal>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "explain.hpp"
#include "run.hpp"

namespace dtrain::board {
namespace {

using namespace std::chrono_literals;
constexpr auto kWantedPause = 200ms;  // between two looks whether a page wants the clusters asked
constexpr auto kDeadline = 120s;
constexpr double kFresh = 60;  // seconds for which an answer holds
constexpr std::size_t kMostLetters = 600;
constexpr std::array kQuestions = {"status", "cost", "health"};

// The error among lines of stderr, {"error": {"message", "hint"}}; all of them where there is none.
std::string complaint_of(const std::string& errors) {
  for (const std::string& line : split(errors, '\n')) {
    try {
      const Json json = Json::parse(line, "a line");
      const Json* const error = json.is_object() ? json.find("error") : nullptr;
      if (!error) continue;
      const std::string hint = member_text(*error, "hint");
      return member_text(*error, "message") + (hint.empty() ? "" : "; " + hint);
    } catch (const DataError&) {  // a warning in words
    }
  }
  return std::string(trim(errors)).substr(0, kMostLetters);
}

}  // namespace

std::optional<CommandOutput> ask_own_program(const std::vector<std::string>& words, const std::stop_token& stop) {
  Spawn child = spawn_of(own_command());
  child.arguments.insert(child.arguments.end(), words.begin(), words.end());
  child.environment = with_variables(own_environment(), {"TERM=dumb"});
  child.group = Spawn::Group::session;
  child.death_signal = SIGKILL;
  std::optional<ProgramAnswer> answer = try_asking(std::move(child), kDeadline, stop);
  if (!answer) return std::nullopt;
  return CommandOutput{std::move(answer->output), std::move(answer->errors)};
}

Json answer_of_command(const std::optional<CommandOutput>& said) {
  Json answer = Json::object({{"answer", Json()}, {"error", "no answer in time"}});
  if (!said) return answer;
  try {
    answer["answer"] = Json::parse(said->output, "the answer");
    answer["error"] = "";
  } catch (const DataError&) {
    answer["error"] = complaint_of(said->errors);
  }
  return answer;
}

ClusterWatch::ClusterWatch(std::vector<std::string> names, AskCommand ask)
    : names_(std::move(names)), ask_(std::move(ask)) {
  if (!names_.empty()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

ClusterWatch::~ClusterWatch() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

Json ClusterWatch::json() {
  Json list = Json::array();
  const MutexLock lock(mutex_);
  for (const std::string& name : names_) {
    const Seen& seen = seen_[name];
    if (wall_seconds() - seen.asked_at > kFresh) wanted_ = true;
    Json row = Json::object({{"name", name}, {"asked_at", seen.asked_at}, {"asking", wanted_}});
    for (const char* question : kQuestions) {
      const auto found = seen.answers.find(question);
      row[question] = found == seen.answers.end() ? Json() : found->second;
    }
    list.push_back(std::move(row));
  }
  return Json::object({{"clusters", list}});
}

void ClusterWatch::work(const std::stop_token& stop) {
  for (; !stop.stop_requested(); sleep_unless_stopped(stop, kWantedPause)) {
    {
      const MutexLock lock(mutex_);
      if (!wanted_) continue;
    }
    ask_all(stop);
    const MutexLock lock(mutex_);
    wanted_ = false;
  }
}

void ClusterWatch::ask_all(const std::stop_token& stop) {
  for (const std::string& name : names_) {
    for (const char* question : kQuestions) {
      if (stop.stop_requested()) return;
      Json answer;
      try {
        answer = answer_of_command(ask_({"cluster", question, name, "--json"}, stop));
      } catch (const Error& error) {
        answer = Json::object({{"answer", Json()}, {"error", error.what()}});
      }
      const MutexLock lock(mutex_);
      seen_[name].answers[question] = std::move(answer);
    }
    const MutexLock lock(mutex_);
    seen_[name].asked_at = wall_seconds();
  }
}

}  // namespace dtrain::board
