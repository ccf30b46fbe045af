#include <condition_variable>
#include <mutex>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {
namespace {

// What the ranks share. One mutex guards everything but the sums themselves.
class World {
 public:
  explicit World(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }

  void barrier() {
    std::unique_lock lock(mutex_);
    wait_for_all(lock, [] {});
  }

  std::vector<float> reduce_tree(std::vector<TreePiece> pieces, int shards, std::int64_t size) {
    TreeSum& sum = join_sum(shards, size);
    for (TreePiece& piece : pieces) sum.add(std::move(piece));
    std::unique_lock lock(mutex_);
    wait_for_all(lock, [&] { take_root(); });
    std::vector<float> result = root_;
    wait_for_all(lock, [&] { sum_.reset(); });
    return result;
  }

  // A rank that leaves can no longer answer: everybody who waits or will wait learns it.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

 private:
  TreeSum& join_sum(int shards, std::int64_t size) {
    const std::lock_guard lock(mutex_);
    if (!sum_) sum_.emplace(shards, size);
    return *sum_;
  }

  void take_root() {
    std::vector<TreePiece> pieces = sum_->take_pieces();
    DTRAIN_CHECK(pieces.size() == 1, "leaves of the tree are missing");
    root_ = std::move(pieces.front().values);
  }

  // Returns once all ranks have called; the last one runs `finish` before anybody goes on.
  template <typename Finish>
  void wait_for_all(std::unique_lock<std::mutex>& lock, Finish finish) {
    if (left_) throw PeerLost("a rank of this process has left");
    const std::uint64_t round = round_;
    if (++arrived_ == ranks_) {
      finish();
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return round_ != round || left_; });
    if (round_ == round) throw PeerLost("a rank of this process has left");
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool left_ = false;
  std::optional<TreeSum> sum_;
  std::vector<float> root_;
};

class LocalRank final : public Communicator {
 public:
  LocalRank(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~LocalRank() override { world_->leave(); }
  int rank() const override { return rank_; }
  int size() const override { return world_->ranks(); }
  void barrier() override { world_->barrier(); }
  std::vector<float> reduce_tree(std::vector<TreePiece> pieces, int shards, std::int64_t size) override {
    return world_->reduce_tree(std::move(pieces), shards, size);
  }

 private:
  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_world(int ranks) {
  const auto world = std::make_shared<World>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) communicators.push_back(std::make_unique<LocalRank>(world, rank));
  return communicators;
}

}  // namespace dtrain::comm
