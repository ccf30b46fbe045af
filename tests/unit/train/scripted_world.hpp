// Workers as threads, with memberships that follow a script: who is in each generation, and what ends it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::train {

// Where a worker can die; each is a call of its membership or of its observer.
enum class Point { voting, computing, reducing, telling, before_apply, after_apply, evaluating, saving, entering };
constexpr Point kAllPoints[] = {Point::voting,     Point::computing,    Point::reducing,
                                Point::telling,    Point::before_apply, Point::after_apply,
                                Point::evaluating, Point::saving,       Point::entering};

struct ScriptedGeneration {
  std::vector<int> workers;  // by rank
  // The generation ends when so many samples are seen: all leave together, or `killed` dies at `point`.
  std::uint64_t until = UINT64_MAX;
  bool at_epoch_end = false;
  std::optional<int> killed = {};
  Point point = Point::voting;
  std::optional<int> frozen = {};  // must not apply what comes next, so the others may be a step ahead
  bool stops = false;              // in place of a change
  // What workers are told that enter it, in place of training.
  std::optional<elastic::Entry::Kind> told = {};
  std::vector<std::string> hosts = {};  // by rank; empty: the workers do not know
};
using Script = std::vector<ScriptedGeneration>;

struct Killed {};

// How a worker finds the others of a generation, when it is not by way of this process's memory.
using Connect = std::function<std::unique_ptr<comm::Communicator>(std::size_t generation, int worker)>;

// Hands out the communicators of a generation once all of its workers have come. With `patience`, which is how long
// ranks wait for each other, it does so once one has come that was in a generation before, as where the connections
// were made meanwhile.
class ScriptedWorld {
 public:
  explicit ScriptedWorld(Script script, Connect connect = {}, std::optional<std::chrono::milliseconds> patience = {})
      : script_(std::move(script)), connect_(std::move(connect)), patience_(patience), ready_(script_.size()) {}

  const ScriptedGeneration& generation(std::size_t index) const { return script_[index]; }

  // The first generation after `last` with this worker, or none.
  std::optional<std::size_t> next_of(int worker, std::optional<std::size_t> last) const {
    for (std::size_t i = last ? *last + 1 : 0; i < script_.size(); ++i) {
      if (std::ranges::count(script_[i].workers, worker)) return i;
    }
    return {};
  }

  // Nothing when the job is over meanwhile.
  std::unique_ptr<comm::Communicator> enter(std::size_t index, int worker, bool was_member) {
    Room& room = ready_[index];
    const std::vector<int>& workers = script_[index].workers;
    std::unique_lock lock(mutex_);
    const bool opens = ++room.came == workers.size() || (patience_ && was_member);
    if (opens && room.world.empty()) {
      room.world =
          comm::make_local_world(static_cast<int>(workers.size()), patience_.value_or(std::chrono::seconds(30)));
    }
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return over_ || !room.world.empty(); })) {
      throw Error("a worker of the script never came");
    }
    if (room.world.empty()) return {};
    if (connect_) {
      lock.unlock();
      return connect_(index, worker);
    }
    return std::move(room.world[static_cast<std::size_t>(std::ranges::find(workers, worker) - workers.begin())]);
  }

  // Keeps where the states of the workers stand.
  void stands(int worker, std::uint64_t samples_seen) {
    const std::lock_guard lock(mutex_);
    reached_[worker] = samples_seen;
  }
  // Whether every worker of the generation that has state is there.
  bool all_reached(std::size_t index, std::uint64_t samples_seen) {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(script_[index].workers, [&](int worker) {
      const auto found = reached_.find(worker);
      return found == reached_.end() || found->second >= samples_seen;
    });
  }

  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  // A worker has died in the generation, which is over for the others.
  void freeze(std::size_t index) {
    const std::lock_guard lock(mutex_);
    frozen_.insert(index);
  }
  bool is_frozen(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return frozen_.contains(index);
  }

 private:
  struct Room {
    std::size_t came = 0;
    std::vector<std::unique_ptr<comm::Communicator>> world;
  };
  const Script script_;
  const Connect connect_;
  const std::optional<std::chrono::milliseconds> patience_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool over_ = false;
  std::map<int, std::uint64_t> reached_;  // samples seen by the state of each worker
  std::set<std::size_t> frozen_;          // generations
  std::vector<Room> ready_;
};

class ScriptedMembership final : public elastic::Membership {
 public:
  // `on_point` hears of every point that a worker reaches, with the samples that its state has seen.
  ScriptedMembership(ScriptedWorld& world, int worker, std::function<void(int, Point, std::uint64_t)> on_point = {})
      : world_(world), worker_(worker), on_point_(std::move(on_point)) {}

  void probed(const std::string& hash) override { probe = hash; }
  elastic::Entry enter(const elastic::TrainingPosition& position) override {
    position_ = position;
    const auto next = world_.next_of(worker_, index_);
    if (next && world_.generation(*next).told) {
      index_ = next;
      return {.kind = *world_.generation(*next).told, .generation = *next + 1, .communicator = {}, .reason = "told"};
    }
    auto communicator = next ? world_.enter(*next, worker_, index_.has_value()) : nullptr;
    if (!communicator) return {.kind = elastic::Entry::Kind::leave, .generation = 0, .communicator = {}, .reason = {}};
    index_ = next;
    return {.kind = elastic::Entry::Kind::train,
            .generation = *next + 1,
            .communicator = std::move(communicator),
            .reason = {},
            .hosts = world_.generation(*next).hosts};
  }
  void entered(const elastic::TrainingPosition& position) override { position_ = position; }

  std::uint64_t vote() override {
    die_at(Point::voting);
    return 0;
  }
  elastic::Verdict judge(std::span<const std::uint64_t>, bool at_epoch_end) override {
    const ScriptedGeneration& now = world_.generation(*index_);
    if (now.killed || now.frozen || position_.samples_seen < now.until || (now.at_epoch_end && !at_epoch_end)) {
      return elastic::Verdict::go_on;
    }
    return now.stops ? elastic::Verdict::stop : elastic::Verdict::change;
  }

  void require_generation() override {
    if (world_.is_frozen(*index_)) throw PeerLost("another worker died");
  }
  void begin_apply() override {
    die_at(Point::before_apply);
    const ScriptedGeneration& now = world_.generation(*index_);
    if (now.frozen == worker_ && position_.samples_seen >= now.until) throw PeerLost("frozen");
  }
  void end_apply(const elastic::TrainingPosition& position) override {
    position_ = position;
    world_.stands(worker_, position.samples_seen);
    die_at(Point::after_apply);
  }
  void lost(const PeerLost&) override { ++losses; }
  void computes(double) override {}
  void progress(elastic::Phase phase) override {
    if (phase == elastic::Phase::computing) die_at(Point::computing);
    if (phase == elastic::Phase::reducing) die_at(Point::reducing);
    if (phase == elastic::Phase::evaluating) die_at(Point::evaluating);
    if (phase == elastic::Phase::saving) die_at(Point::saving);
    if (phase == elastic::Phase::entering) die_at(Point::entering);
  }
  void report(const Json&) override {}

  void die_at(Point point) const {
    try {
      if (on_point_) on_point_(worker_, point, position_.samples_seen);
    } catch (const Killed&) {
      world_.freeze(*index_);
      throw;
    }
    const ScriptedGeneration& now = world_.generation(*index_);
    if (now.killed != worker_ || now.point != point || position_.samples_seen < now.until) return;
    world_.freeze(*index_);
    throw Killed();
  }

  bool all_reached(std::uint64_t samples_seen) const {
    return world_.generation(*index_).stops || world_.all_reached(*index_, samples_seen);
  }

  int losses = 0;
  std::string probe;  // what the warm-up gave, if that was told

 private:
  ScriptedWorld& world_;
  const int worker_;
  const std::function<void(int, Point, std::uint64_t)> on_point_;
  std::optional<std::size_t> index_;
  elastic::TrainingPosition position_;
};

}  // namespace dtrain::train
