// Messages of workers. Those of evicted and unknown workers are ignored.
#include <fmt/format.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

// Returns false when workers that compute other bits are allowed.
bool refuse_worker(DecisionContext& context, const Worker& worker, const std::string& why) {
  if (context.state.policy.allow_mixed_hardware) return false;
  const std::string hint = "setting 'mixed-hardware' allow lets it join, but the bits then depend on the hosts";
  context.say(fmt::format("{} would compute other bits than the rest: {}", name_of(worker), why), hint,
              Say::Kind::error);
  context.settle = true;
  Host& host = context.host_of(worker);
  lose_worker(context, worker.id, {.reason = fmt::format("it would compute other bits than the rest: {}", why)});
  host.next_command = hint;
  return true;
}

bool is_wildcard(const std::string& address) { return address.empty() || address == "0.0.0.0" || address == "::"; }

struct Hear {
  DecisionContext& context;
  Worker& worker;

  void operator()(const Hello& hello) const {
    if (worker.phase != WorkerPhase::starting) return;
    note_hello(context, worker, hello);
    context.emit(EventKind::worker_up, worker,
                 {{"pid", hello.pid}, {"seconds", seconds_between(worker.since, context.now)}});
    context.enter_phase(worker, WorkerPhase::preparing);
    refuse_other_machine(context, worker);
  }

  void operator()(const Ready& ready) const {
    if (worker.phase != WorkerPhase::preparing) return;
    worker.probe = ready.probe;
    if (refuse_other_probe(context, worker)) return;
    worker.position = ready.position;
    context.emit(EventKind::worker_ready, worker, {{"seconds", seconds_between(worker.since, context.now)}});
    context.enter_phase(worker, WorkerPhase::ready);
    context.settle = true;
  }

  void operator()(const Meshed& meshed) const { on_meshed(context, worker, meshed); }
  void operator()(const Entered& entered) const { on_entered(context, worker, entered); }
  void operator()(const Frozen& frozen) const { on_frozen(context, worker, frozen.generation, frozen.position); }
  void operator()(const Progress& progress) const { note_progress(context, worker, progress); }

  // A loss in a generation that this worker has already left only echoes its end.
  void operator()(const Lost& lost) const {
    sign_of(context, worker, lost.generation);
    const auto& current = context.state.current;
    if (!is_member(worker) || !current) return;
    const bool echo = lost.generation < current->number && worker.entered == current->number;
    if (echo || lost.generation > current->number) return;
    context.emit(EventKind::lost, worker, {{"generation", lost.generation}, {"reason", lost.reason}});
    const Time worked = work_ended(context, current->members);
    on_frozen(context, worker, lost.generation, lost.position);
    if (!context.state.freezing) {
      begin_freeze(context, fmt::format("{} lost the others: {}", name_of(worker), lost.reason), worked);
    }
  }

  // Epochs, evaluations and checkpoints become events of the job; steps are too many.
  void operator()(const Report& report) const {
    const bool is_event = report.event.is_object() && report.event.find("event");
    if (!is_event || event_kind(report.event) == EventKind::step) return;
    if (event_kind(report.event) == EventKind::lost) worker.lost_weights = true;
    Json event = report.event;
    event["worker"] = worker.id;
    context.add(Emit{std::move(event)});
  }

  void operator()(const AskLeave& ask) const {
    take_notice(context, {worker.host, true, fmt::format("{} asked to leave: {}", name_of(worker), ask.reason)});
    context.settle = true;
  }

  void operator()(const Left& left) const {
    context.settle = true;
    switch (left.how) {
      case Left::How::done:
        return on_done(context, worker, left.position);
      case Left::How::removed:
        return on_removed(left);
      case Left::How::stopped:
        return on_stopped(left);
      case Left::How::failed:
        return on_failed(left);
    }
  }

 private:
  // A removed worker leaves after its last step in the old generation, so the new one was agreed on.
  void on_removed(const Left& left) const {
    const auto& change = context.state.change;
    if (change && change->committed && contains(change->leaving, worker.id)) sign_of(context, worker, change->number);
    if (is_member(worker)) return lose_worker(context, worker.id, {.reason = "it left without being asked"});
    note_left(left);
  }

  void on_stopped(const Left& left) const {
    auto& ending = context.state.ending;
    if (ending && ending->saver == worker.id) ending->saved = !worker.lost_weights;
    note_left(left);
    const std::string reason = left.reason.empty() ? fmt::format("{} stopped", name_of(worker)) : left.reason;
    if (!ending) begin_stop(context, reason, ExitCode::resumable);
  }

  void on_failed(const Left& left) const {
    const bool job_ends = left.job_exit_code != 0;
    if (job_ends) {  // of a training: the others have weights that lead there too; programs save by themselves
      begin_stop(context, fmt::format("{}: {}", name_of(worker), left.reason),
                 static_cast<ExitCode>(left.job_exit_code), false);
    }
    lose_worker(
        context, worker.id,
        {.reason = left.reason, .exits = job_ends, .hint = job_ends ? left.hint : "", .last_lines = left.last_lines});
  }

  void note_left(const Left& left) const {
    worker.left = left;
    worker.position = left.position;
    context.emit(EventKind::left, worker, {{"reason", left.reason}});
    const bool was_member = is_member(worker);
    context.enter_phase(worker, WorkerPhase::leaving);
    if (was_member) recount_unfrozen(context);
  }
};

}  // namespace

bool refuse_other_machine(DecisionContext& context, const Worker& worker) {
  State& state = context.state;
  if (state.fingerprint.empty()) state.fingerprint = worker.fingerprint;
  return worker.fingerprint != state.fingerprint &&
         refuse_worker(context, worker, fmt::format("it is {} instead of {}", worker.fingerprint, state.fingerprint));
}

bool refuse_other_probe(DecisionContext& context, const Worker& worker) {
  State& state = context.state;
  if (state.probe.empty()) state.probe = worker.probe;
  return !worker.probe.empty() && worker.probe != state.probe &&
         refuse_worker(context, worker, "it computed other values from the same samples");
}

void note_hello(DecisionContext& context, Worker& worker, const Hello& hello) {
  worker.pid = hello.pid;
  worker.data = hello.data;
  worker.fingerprint = hello.fingerprint;
  if (is_wildcard(worker.data.address)) worker.data.address = context.host_of(worker).address;
}

void worker_says(DecisionContext& context, const WorkerSays& says) {
  Worker* worker = context.find(says.worker);
  if (worker == nullptr || worker->phase == WorkerPhase::ending || worker->left) return;
  worker->heard = context.now;
  std::visit(Hear{context, *worker}, says.message);
}

}  // namespace dtrain::elastic
