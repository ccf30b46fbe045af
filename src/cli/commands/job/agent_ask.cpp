// One question or order on standard input, which this process carries out for another machine.
#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/base/error_json.hpp>
#include <dtrain/cluster/member.hpp>
#include <dtrain/launcher/agent_registry.hpp>

#include "agent_roles.hpp"
#include "job/registered/head.hpp"
#include "job/spec/wait_for_stop.hpp"

namespace dtrain::cli {
namespace {

constexpr std::chrono::seconds kAskDeadline{30};

}  // namespace

ExitCode ask_head_of_machine(Reporter& reporter) {
  const auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile);
  if (!registry) throw UsageError("agent --ask: this machine is not a node of a cluster");
  reporter.answer_json(launcher::ask_registry(*registry, document_from_input(), kAskDeadline));
  return ExitCode::ok;
}

// The reason is not that of `dtrain stop`, which ends a job of the queue for good.
ExitCode stop_job_in_folder(Reporter&) {
  const Json order = document_from_input();
  const job::JobFolder folder{order.at("job_dir").as_string()};
  job::stop_job_in(folder, order.at("why").as_string());  // who asks reads how it ended in the folder
  return ExitCode::ok;
}

// An error is an answer: the machine that asks shows it to its user.
ExitCode answer_as_registered(Reporter& reporter) {
  const Json question = document_from_input();
  try {
    auto answer = cluster::answer_as_member(question);
    if (!answer) answer = job::answer_as_head(question, reporter);
    if (!answer) throw UsageError("it does not know this question", "use the same version of dtrain on all machines");
    reporter.answer_json(*answer);
  } catch (const Error& error) {
    reporter.answer_json(Json::object({{"error", error_to_json(error)}}));
  }
  return ExitCode::ok;
}

}  // namespace dtrain::cli
