#include <iostream>
#include <iterator>

#include <dtrain/base/process.hpp>
#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/agent.hpp>

#include "command.hpp"
#include "worker.hpp"

namespace dtrain::cli {
namespace {

struct AgentCommand {
  bool worker = false;
};

void bind(OptionSet& set, AgentCommand& options) {
  set.group("What").add("--worker", options.worker, "be a worker of the agent that started this").flag_only = true;
}

// The token comes through a pipe, so nobody else can read it.
elastic::AgentJoin join_from_input() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (text.empty()) {
    throw UsageError("agent: nobody said which job to join", "`dtrain train` starts agents and workers by itself");
  }
  return elastic::agent_join_from_json(Json::parse(text, "standard input"));
}

ExitCode act(const AgentCommand& options, const OptionSet&, Console&) {
  if (options.worker) return run_worker();
  watch_stop_signals();
  std::vector<std::string> worker = own_command();
  worker.insert(worker.end(), {"agent", "--worker"});
  elastic::run_agent({.join = join_from_input(), .worker_command = std::move(worker)});
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_agent() {
  auto command = make_command<AgentCommand>("agent", "started by dtrain itself, once on every host of a job", act);
  command->examples = {"dtrain agent"};
  command->see_also = {"train", "hosts list"};
  return command;
}

}  // namespace dtrain::cli
