// Clusters in the user's AWS account, or of registered hosts, as `dtrain cluster status`, `cost` and `health` see them.
// They are asked only while a page shows them: each question is a call to AWS, and to the machines.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::board {

// What a command wrote; nullopt: it did not end in time, or the token stopped it.
struct CommandOutput {
  std::string output, errors;
};
using AskCommand =
    std::function<std::optional<CommandOutput>(const std::vector<std::string>& words, const std::stop_token& stop)>;
// This program itself, with these words behind its name.
std::optional<CommandOutput> ask_own_program(const std::vector<std::string>& words, const std::stop_token& stop);

// {"answer": JSON or null, "error": text}: what a command with --json wrote.
Json answer_of_command(const std::optional<CommandOutput>& said);

// A thread of its own asks. Its destructor stops the command that runs. json() may be called from any thread, and
// returns at once.
class ClusterWatch {
 public:
  ClusterWatch(std::vector<std::string> names, AskCommand ask);
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;

  // {"clusters": [{"name", "asked_at", "asking", "status", "cost", "health"}]}, each of the last three as of
  // answer_of_command(), or null before its first answer. Has them asked again where they are older than a minute.
  Json json();

 private:
  struct Seen {
    double asked_at = 0;  // seconds since 1970; 0: never
    std::map<std::string, Json> answers{};
  };

  void work(const std::stop_token& stop);
  void ask_all(const std::stop_token& stop);

  const std::vector<std::string> names_;
  const AskCommand ask_;
  Mutex mutex_;
  std::map<std::string, Seen> seen_ DTRAIN_GUARDED_BY(mutex_);
  bool wanted_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace dtrain::board
