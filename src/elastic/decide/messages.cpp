// What workers say. Who was evicted, or is not known, is not heard.
#include <fmt/format.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

bool is_wildcard(const std::string& address) { return address.empty() || address == "0.0.0.0" || address == "::"; }

struct Hear {
  Turn& turn;
  Worker& worker;

  void operator()(const Hello& hello) const {
    if (worker.phase != WorkerPhase::starting) return;
    note_hello(turn, worker, hello);
    turn.emit("worker_up", worker, {{"pid", hello.pid}, {"seconds", seconds_between(worker.since, turn.now)}});
    turn.enter_phase(worker, WorkerPhase::preparing);
    check_fingerprint();
  }

  void operator()(const Ready& ready) const {
    if (worker.phase != WorkerPhase::preparing || computes_other_bits(ready)) return;
    worker.standing = ready.standing;
    turn.emit("worker_ready", worker, {{"seconds", seconds_between(worker.since, turn.now)}});
    turn.enter_phase(worker, WorkerPhase::ready);
    turn.settle = true;
  }

  void operator()(const Meshed& meshed) const { on_meshed(turn, worker, meshed); }
  void operator()(const Entered& entered) const { on_entered(turn, worker, entered); }
  void operator()(const Frozen& frozen) const { on_frozen(turn, worker, frozen.generation, frozen.standing); }
  void operator()(const Progress& progress) const { note_progress(turn, worker, progress); }

  // A loss in a generation that this worker has left behind is an echo of how it ended.
  void operator()(const Lost& lost) const {
    sign_of(turn, worker, lost.generation);
    const auto& current = turn.state.current;
    if (!is_member(worker) || !current) return;
    const bool echo = lost.generation < current->number && worker.entered == current->number;
    if (echo || lost.generation > current->number) return;
    turn.emit("lost", worker, {{"generation", lost.generation}, {"reason", lost.reason}});
    on_frozen(turn, worker, lost.generation, lost.standing);
    if (!turn.state.freezing) {
      begin_freeze(turn, fmt::format("{} lost the others: {}", name_of(worker), lost.reason), std::nullopt);
    }
  }

  // Epochs, evaluations and checkpoints belong in the job's story; there are too many steps.
  void operator()(const Report& report) const {
    const Json* kind = report.event.is_object() ? report.event.find("event") : nullptr;
    if (kind == nullptr || *kind == Json("step")) return;
    Json event = report.event;
    event["worker"] = worker.id;
    turn.add(Emit{std::move(event)});
  }

  void operator()(const AskLeave& ask) const {
    take_notice(turn, {worker.host, true, fmt::format("{} asked to leave: {}", name_of(worker), ask.reason)});
    turn.settle = true;
  }

  void operator()(const Left& left) const {
    turn.settle = true;
    switch (left.how) {
      case Left::How::done:
        return on_done(turn, worker, left.standing);
      case Left::How::removed:
        return on_removed(left);
      case Left::How::stopped:
        return on_stopped(left);
      case Left::How::failed:
        return on_failed(left);
    }
  }

 private:
  void check_fingerprint() const {
    State& state = turn.state;
    if (state.fingerprint.empty()) state.fingerprint = worker.fingerprint;
    if (worker.fingerprint != state.fingerprint) {
      refuse(fmt::format("it is {} instead of {}", worker.fingerprint, state.fingerprint));
    }
  }

  bool computes_other_bits(const Ready& ready) const {
    State& state = turn.state;
    if (state.probe.empty()) state.probe = ready.probe;
    return !ready.probe.empty() && ready.probe != state.probe &&
           refuse("it computed something else of the same samples");
  }

  // False: workers that compute other bits are allowed.
  bool refuse(const std::string& why) const {
    if (turn.state.policy.allow_mixed_hardware) return false;
    const std::string hint = "--mixed-hardware allow gives the same bits up";
    turn.say(fmt::format("{} would compute other bits than the rest: {}", name_of(worker), why), hint,
             Say::Kind::error);
    turn.settle = true;
    Host& host = turn.host_of(worker);
    lose_worker(turn, worker.id, {.reason = fmt::format("it would compute other bits than the rest: {}", why)});
    host.next_command = hint;
    return true;
  }

  // Its last step in the old generation is over when a removed worker leaves, so the new one was agreed on.
  void on_removed(const Left& left) const {
    const auto& change = turn.state.change;
    if (change && change->committed && contains(change->leaving, worker.id)) sign_of(turn, worker, change->number);
    if (is_member(worker)) return lose_worker(turn, worker.id, {.reason = "it left although nobody had asked"});
    note_left(left);
  }

  void on_stopped(const Left& left) const {
    note_left(left);
    const std::string reason = left.reason.empty() ? fmt::format("{} stopped", name_of(worker)) : left.reason;
    if (!turn.state.ending) begin_stop(turn, reason, ExitCode::resumable);
  }

  void on_failed(const Left& left) const {
    const bool job_ends = left.job_exit_code != 0;
    if (job_ends) {
      begin_stop(turn, fmt::format("{}: {}", name_of(worker), left.reason), static_cast<ExitCode>(left.job_exit_code));
    }
    lose_worker(turn, worker.id, {.reason = left.reason, .exits = job_ends});
  }

  void note_left(const Left& left) const {
    worker.left = left;
    worker.standing = left.standing;
    turn.emit("left", worker, {{"reason", left.reason}});
    turn.enter_phase(worker, WorkerPhase::leaving);
  }
};

}  // namespace

void note_hello(Turn& turn, Worker& worker, const Hello& hello) {
  worker.pid = hello.pid;
  worker.data = hello.data;
  worker.fingerprint = hello.fingerprint;
  if (is_wildcard(worker.data.address)) worker.data.address = turn.host_of(worker).address;
}

void worker_says(Turn& turn, const WorkerSays& says) {
  Worker* worker = turn.find(says.worker);
  if (worker == nullptr || worker->phase == WorkerPhase::ending || worker->left) return;
  worker->heard = turn.now;
  std::visit(Hear{turn, *worker}, says.message);
}

}  // namespace dtrain::elastic
