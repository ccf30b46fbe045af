// A simulation around decide(): hosts, agents and workers that follow elastic/protocol.hpp and come, go, die and hang
// at random, with late, doubled and stale messages. A violated invariant fails the test with the seed.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/random.hpp>

#include "decide/decide.hpp"

namespace dtrain::elastic {

// A worker that follows the protocol.
struct SimWorker {
  enum class Stage { starting, building, waiting, training };
  WorkerId id = 0;
  std::string host;
  int slot = 0;
  Stage stage = Stage::starting;
  int ticks_to_go = 0;  // until the stage is over
  bool alive = true;
  bool stopped = false;  // SIGSTOP: it does nothing at all
  bool hung = false;     // its trainer hangs; its other threads run
  double seconds_in_phase = 0;

  TrainingPosition position;
  Generation current = 0, frozen = 0;
  bool synced = false;  // Entered was sent for `current`
  int ticks_alone = 0;  // since a worker that it needs is gone
  std::map<Generation, std::vector<WorkerId>> prepared;
  std::map<Generation, int> meshing;  // ticks until it tries
  std::set<Generation> meshed;
  std::optional<Commit> commit;
  Generation agreed = 0;
  bool leave = false;
  std::optional<Stop> stop;
};

class DecideSim {
 public:
  DecideSim(const Policy& policy, std::uint64_t seed);
  // Random edits, drains, deaths and hangs for so many ticks of 0.1 s.
  void chaos(int ticks);
  // No more faults; everything that was stopped continues.
  void calm(int ticks);
  void stop();

  const State& state() const { return state_; }
  bool finished() const { return finished_.has_value(); }
  const Finish& finish() const { return *finished_; }
  std::uint64_t generations() const { return last_prepared_; }
  Term coordinators() const { return term_; }
  // Every allotted slot is a member of a generation that trains, and no change is in progress.
  bool is_at_rest() const;
  std::string describe() const;

 private:
  bool chance(double probability) { return random_.uniform() < static_cast<float>(probability); }
  int between(int first, int last) { return first + static_cast<int>(random_.below(last - first + 1)); }

  void tick();
  void make_trouble();
  // Another coordinator continues with what the agents and the journal know.
  void lose_coordinator();
  HostReport report_of(const std::string& host) const;
  void edit_hosts();
  void deliver();
  void post(const Event& event, int delay);
  void say(const SimWorker& worker, const FromWorker& message);
  void die(SimWorker& worker, int signal);
  void run_worker(SimWorker& worker);
  void heartbeat(SimWorker& worker);
  void try_meshes(SimWorker& worker);
  void try_enter(SimWorker& worker);
  void run_generations();
  void sync(Generation generation, const std::vector<WorkerId>& members);
  void train(Generation generation, const std::vector<WorkerId>& members);
  void agree(const std::vector<WorkerId>& members);
  void lose_others(SimWorker& worker);
  void leave_job(SimWorker& worker, Left::How how);

  void feed(const Event& event);
  void act(const Action& action);
  void act_on(const StartHost& start);
  void act_on(const RunAdmissionCheck& check);
  void act_on(const StartWorker& start);
  void act_on(const Send& send);
  void act_on(const KillWorker& kill);
  void act_on(const EndHost& end);
  void act_on(const LogMembership& line);
  void act_on(const JournalEntry& entry);
  void act_on(const Finish& finish) { finished_ = finish; }
  void act_on(const AnnounceVoters& told);
  void act_on(const AcquireTiebreaker& tiebreaker) {
    post(TiebreakerAnswered{tiebreaker.generation, true}, between(0, 5));
  }
  void act_on(const Emit&) {}
  void act_on(const Say&) {}
  void receive(SimWorker& worker, const ToWorker& message);

  const std::uint64_t seed_;
  RandomStream random_;
  Time now_{std::chrono::seconds(1'000)};
  State state_;
  bool trouble_ = false;
  std::map<WorkerId, SimWorker> workers_;
  struct Agent {
    bool up = false, coming = false, ending = false;
  };
  std::map<std::string, Agent> agents_;
  struct Mail {
    int tick = 0;
    Event event;
  };
  std::map<WorkerId, std::deque<Mail>> from_workers_;  // in order, each worker's
  std::deque<Mail> from_hosts_;
  std::vector<Event> memory_;  // for doubles
  int tick_ = 0;

  KnownVoters voters_;  // as the agents know them
  Term term_ = 1;
  std::set<std::string> wanted_, drained_;
  std::map<std::string, bool> logged_;
  std::set<WorkerId> known_dead_;  // decide() knows of their end, or has killed them
  std::set<std::string> stepped_hosts_;
  Generation last_prepared_ = 0, last_stepped_ = 0, last_journal_ = 0;
  std::map<Generation, std::vector<WorkerId>> plans_;
  TrainingPosition furthest_;
  std::optional<Finish> finished_;
};

}  // namespace dtrain::elastic
