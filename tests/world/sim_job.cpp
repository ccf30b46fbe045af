#include "sim_job.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::world {

using namespace elastic;
using namespace std::chrono_literals;

namespace {

constexpr auto kTick = 5ms;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSlowness = 4;
#else
constexpr int kSlowness = 1;
#endif

CoordinatorOptions options_for(const Path& folder, const Policy& policy) {
  CoordinatorOptions options;
  options.policy = policy;
  options.folder = folder;
  return options;
}

}  // namespace

Policy quick_policy() {
  Policy policy;
  policy.elastic = true;
  policy.boundary = Boundary::step;
  policy.failure_limit = policy.fruitless_limit = 1000;  // a busy machine may look ill quite often
  policy.between_changes = 5ms;
  policy.quarantine_base = 10ms;
  policy.quarantine_cap = 50ms;
  policy.heartbeat_timeout = kSlowness * 600ms;
  policy.hello_timeout = policy.mesh_timeout = policy.freeze_timeout = policy.leave_timeout = kSlowness * 1s;
  policy.prepare_timeout = policy.kill_timeout = kSlowness * 2s;
  policy.hang_floors = {.loading = kSlowness * 400ms,
                        .computing = kSlowness * 400ms,
                        .first_step = kSlowness * 800ms,
                        .evaluating = kSlowness * 400ms,
                        .saving = kSlowness * 400ms,
                        .waiting = kSlowness * 1s};
  return policy;
}

SimJob::SimJob(std::vector<std::string> hosts, const Policy& policy, Body body, SimOptions options)
    : agent_pool_(std::move(body), std::move(options)),
      coordinator_((write_hosts(hosts), options_for(folder_.path(), policy)), agent_pool_, Moment::now()) {}

Finish SimJob::run(const std::function<void(SimJob&)>& act, std::chrono::milliseconds deadline) {
  const Time end = Moment::now().time + deadline;
  Time next_tick{};
  while (!coordinator_.finished()) {
    for (AgentPoolEvent& event : agent_pool_.take_events(kTick)) coordinator_.feed(std::move(event), Moment::now());
    const Time now = Moment::now().time;
    if (now > end) throw Error("the job does not come to its end:\n" + workers() + last_events());
    if (now >= next_tick) coordinator_.tick(Moment::now());
    if (now >= next_tick) next_tick = now + kTick;
    if (act) act(*this);
  }
  return *coordinator_.finished();
}

void SimJob::set_hosts(const std::vector<std::string>& hosts) {
  write_hosts(hosts);
  ask(Json::object({{"ask", "hosts-changed"}}));
}

Json SimJob::ask(Json body) {
  Json answer;
  coordinator_.feed(Request{std::move(body), [&](Json json) { answer = std::move(json); }}, Moment::now());
  return answer;
}

std::vector<WorkerId> SimJob::members() const {
  return state().current ? state().current->members : std::vector<WorkerId>();
}

TrainingPosition SimJob::furthest() const {
  TrainingPosition furthest;
  for (const auto& [id, worker] : state().workers)
    furthest = std::max({furthest, worker.position, worker.progress.position});
  return furthest;
}

std::string SimJob::workers() const {
  std::string text;
  for (const auto& [id, worker] : state().workers) {
    const Progress& progress = worker.progress;
    text += fmt::format("worker {} on {}: generation {}, {} for {:.2f} s, epoch {} step {}\n", id, worker.host,
                        progress.generation, phase_name(progress.phase), progress.seconds_in_phase,
                        progress.position.epoch, progress.position.step);
  }
  return text;
}

std::string SimJob::last_events(std::size_t count) const {
  const std::vector<Json> events = read_events(folder() / "events.jsonl");
  std::string text;
  for (std::size_t i = events.size() - std::min(count, events.size()); i < events.size(); ++i) {
    text += events[i].dump() + "\n";
  }
  return text;
}

void SimJob::write_hosts(const std::vector<std::string>& hosts) {
  write_file_atomic(folder_ / "host_worker", fmt::format("{}\n", fmt::join(hosts, "\n")));
}

}  // namespace dtrain::world
