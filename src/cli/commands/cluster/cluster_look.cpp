#include "cluster_look.hpp"

#include <fmt/format.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/launcher/agent_registry.hpp>

#include "job/report/stop_tokens.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::seconds kToLogIn{15};
constexpr std::chrono::seconds kToAsk{30};
constexpr std::chrono::seconds kToBring{120};  // the program is some tens of MB
constexpr std::chrono::seconds kToBegin{10};   // for the head, once the program is there
constexpr auto kPause = 200ms;

bool answers(cluster::ClusterHead& head) { return head.session().stat(launcher::kAgentRegistryFile).has_value(); }

void wait_for_answers(cluster::ClusterHead& head) {
  const auto until = std::chrono::steady_clock::now() + kToBegin;
  while (!answers(head) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kPause);
}

void look(const cluster::Fleet& fleet, const Json& question, job::TimeLimit& limit, HeadLook& found) {
  cluster::ClusterHead head(
      fleet, 0s, [](const std::string&) {}, limit.token());
  limit.begin_again(kToAsk);
  if (!head.has_program()) {
    if (!head.waits_for_program()) {
      found.unknown = "the head is still booting";
      return;
    }
    limit.begin_again(kToBring);
    head.bring_program(kToBring);
    found.news = "copied dtrain to the head, which was waiting for it";
    limit.begin_again(kToBegin + kToAsk);
    wait_for_answers(head);
  }
  if (!answers(head)) {
    found.unknown = "the head has the program but does not answer yet";
    return;
  }
  head.announce(fleet);
  found.answer = head.ask(question);
}

// Where there is nothing to ask.
std::string why_not(const cluster::Fleet& fleet) {
  if (fleet.on_emr()) return "Amazon EMR runs the nodes";
  const cluster::Node* head = fleet.head();
  if (!head) return "the cluster has no head";
  if (head->state != "running") return fmt::format("the head is {}", head->state);
  return {};
}

}  // namespace

HeadLook look_at_head(const cluster::Fleet& fleet, const Json& question) {
  HeadLook found{.unknown = why_not(fleet)};
  if (!found.unknown.empty()) return found;
  job::TimeLimit limit(kToLogIn);
  try {
    look(fleet, question, limit, found);
  } catch (const Stopped&) {
    if (stop_signal() != 0) throw;
    found.unknown = "the head did not answer in time";
  } catch (const Error& error) {
    found.unknown = error.what();
  }
  return found;
}

cluster::AgentWord HeadLook::agent_of(const cluster::Node& node, const cluster::Fleet& fleet) const {
  if (fleet.emr) return {cluster::AgentWord::State::none, "Amazon EMR runs it"};
  if (!unknown.empty()) return {cluster::AgentWord::State::unknown, unknown};
  return cluster::agent_of(node, fleet, answer);
}

void bind_no_head(config::OptionSet& set, bool& no_head) {
  set.add("--no-head", no_head, "query AWS only, and do not contact the head").flag_only = true;
}

}  // namespace dtrain::cli
