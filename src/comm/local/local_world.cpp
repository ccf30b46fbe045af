#include <atomic>
#include <cstring>
#include <deque>
#include <map>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/communicator.hpp>

#include "leaf_joiner.hpp"

namespace dtrain::comm {
namespace {

// One reduction or gathering that all ranks do together. The ranks' leaves go into one joiner.
struct Round {
  explicit Round(int ranks) : notes(static_cast<std::size_t>(ranks)), texts(static_cast<std::size_t>(ranks)) {}
  int came = 0, gone = 0;  // ranks
  ReductionShape shape;
  std::vector<Note> notes;
  std::vector<std::string> texts;
  std::unique_ptr<LeafJoiner> joiner;
  std::size_t roots = 0;  // buckets whose sum is complete
  bool is_complete(int ranks) const { return came == ranks && (!joiner || roots == joiner->buckets().size()); }
};

// What the ranks share. One mutex guards everything but the sums themselves.
class World {
 public:
  World(int ranks, std::chrono::milliseconds deadline)
      : ranks_(ranks), deadline_(deadline), next_round_(static_cast<std::size_t>(ranks)) {}
  int ranks() const { return ranks_; }

  std::shared_ptr<Round> begin(int rank, const ReductionShape& shape, const Note& note) {
    const MutexLock lock(mutex_);
    const std::shared_ptr<Round> round = join(rank);
    if (!round->joiner) make_joiner(*round, shape);
    if (shape != round->shape) {
      throw PeerLost(fmt::format("rank {} reduces another shape than the others", rank));
    }
    round->notes[static_cast<std::size_t>(rank)] = note;
    return round;
  }

  Reduced finish(Round& round) {
    const MutexLock lock(mutex_);
    wait([&] { return round.is_complete(ranks_); });
    Reduced result{{}, round.notes};
    FloatBuffer& sum = round.joiner->first_memory();
    if (++round.gone == ranks_) {
      result.sum = std::move(sum);
    } else {
      result.sum = pool_.take(round.shape.size);
      std::memcpy(result.sum.data(), sum.data(), sum.size() * sizeof(float));
    }
    return result;
  }

  std::vector<std::string> all_gather(int rank, ByteView mine) {
    const MutexLock lock(mutex_);
    const std::shared_ptr<Round> round = join(rank);
    round->texts[static_cast<std::size_t>(rank)] = text_of(mine);
    changed_.notify_all();
    wait([&] { return round->is_complete(ranks_); });
    return round->texts;
  }

  void send(int from, int to, ByteView bytes) {
    const MutexLock lock(mutex_);
    require_alive();
    letters_[{from, to}].emplace_back(text_of(bytes));
    changed_.notify_all();
  }

  void receive(int from, int to, std::span<std::byte> bytes) {
    const MutexLock lock(mutex_);
    std::deque<std::string>& letters = letters_[{from, to}];
    wait([&] { return !letters.empty(); });
    const std::string letter = std::move(letters.front());
    letters.pop_front();
    if (letter.size() != bytes.size()) {
      throw PeerLost(fmt::format("rank {} sent {} bytes where {} were expected", from, letter.size(), bytes.size()));
    }
    std::memcpy(bytes.data(), letter.data(), letter.size());
  }

  void recycle(FloatBuffer sum) { pool_.give(std::move(sum)); }

  // A rank that leaves can no longer answer: the ranks that wait or will wait get PeerLost.
  void leave(int rank) {
    const MutexLock lock(mutex_);
    if (lost_.empty()) lost_ = fmt::format("rank {} of this process has left", rank);
    changed_.notify_all();
  }

 private:
  // The round that this rank's turn has come to.
  std::shared_ptr<Round> join(int rank) DTRAIN_REQUIRES(mutex_) {
    require_alive();
    const std::uint64_t number = next_round_[static_cast<std::size_t>(rank)]++;
    std::shared_ptr<Round>& place = rounds_[number];
    if (!place) place = std::make_shared<Round>(ranks_);
    const std::shared_ptr<Round> round = place;
    if (++round->came == ranks_) rounds_.erase(number);
    changed_.notify_all();
    return round;
  }

  void make_joiner(Round& round, const ReductionShape& shape) {
    round.shape = shape;
    round.joiner = std::make_unique<LeafJoiner>(shape, ShardSpan{0, shape.shards}, pool_, [this, &round](const Piece&) {
      const MutexLock lock(mutex_);
      if (++round.roots == round.joiner->buckets().size()) changed_.notify_all();
    });
  }

  // Until `done`, even if a rank left meanwhile.
  template <typename Done>
  void wait(Done done) DTRAIN_REQUIRES(mutex_) {
    const bool in_time =
        changed_.wait_for(mutex_, deadline_, [&]() DTRAIN_REQUIRES(mutex_) { return done() || !lost_.empty(); });
    if (done()) return;
    if (!in_time) lost_ = "a rank of this process did not answer in time";
    changed_.notify_all();
    require_alive();
  }

  void require_alive() const DTRAIN_REQUIRES(mutex_) {
    if (!lost_.empty()) throw PeerLost(lost_);
  }

  const int ranks_;
  const std::chrono::milliseconds deadline_;
  FloatPool pool_;
  Mutex mutex_;
  CondVar changed_;
  std::string lost_ DTRAIN_GUARDED_BY(mutex_);                       // why the world has ended; empty: it has not
  std::vector<std::uint64_t> next_round_ DTRAIN_GUARDED_BY(mutex_);  // [rank]
  // Rounds that some ranks have not come to.
  std::map<std::uint64_t, std::shared_ptr<Round>> rounds_ DTRAIN_GUARDED_BY(mutex_);
  std::map<std::pair<int, int>, std::deque<std::string>> letters_ DTRAIN_GUARDED_BY(mutex_);
};

class LocalReduction final : public Reduction {
 public:
  LocalReduction(World& world, int rank, std::shared_ptr<Round> round)
      : world_(world), rank_(rank), round_(std::move(round)) {}
  ~LocalReduction() override {
    if (!finished_) world_.leave(rank_);
  }
  std::span<float> leaf(int shard) override { return round_->joiner->leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { round_->joiner->ready(shard, first, size); }
  void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    round_->joiner->defer(shard, range, floats);
  }
  void compute_deferred() override { round_->joiner->compute_deferred(); }
  Reduced finish() override {
    Reduced result = world_.finish(*round_);
    finished_ = true;
    return result;
  }

 private:
  World& world_;
  const int rank_;
  const std::shared_ptr<Round> round_;
  bool finished_ = false;
};

class LocalRank final : public HostCommunicator {
 public:
  LocalRank(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~LocalRank() override { world_->leave(rank_); }
  int rank() const override { return rank_; }
  int size() const override { return world_->ranks(); }
  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    return std::make_unique<LocalReduction>(*world_, rank_, world_->begin(rank_, shape, note));
  }
  void recycle(FloatBuffer sum) override { world_->recycle(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return world_->all_gather(rank_, mine); }
  void send(int to, ByteView bytes) override { world_->send(rank_, to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { world_->receive(from, rank_, bytes); }
  void abort() noexcept override { world_->leave(rank_); }

 private:
  const std::shared_ptr<World> world_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_world(int ranks, std::chrono::milliseconds deadline) {
  const auto world = std::make_shared<World>(ranks, deadline);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) communicators.push_back(std::make_unique<LocalRank>(world, rank));
  return communicators;
}

}  // namespace dtrain::comm
