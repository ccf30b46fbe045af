#include <atomic>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/communicator.hpp>

#include "leaf_joiner.hpp"

namespace dtrain::comm {
namespace {

class SingleReduction final : public Reduction {
 public:
  SingleReduction(const ReductionShape& shape, const Note& note, FloatPool& pool, std::atomic<bool>& dead)
      : note_(note),
        dead_(dead),
        joiner_(shape, {0, shape.shards}, pool, [this](const Piece&) { roots_.fetch_add(1); }) {}
  ~SingleReduction() override {
    if (!finished_) dead_ = true;
  }

  std::span<float> leaf(int shard) override { return joiner_.leaf(shard); }
  void ready(int shard, std::int64_t first, std::int64_t size) override { joiner_.ready(shard, first, size); }
  void defer(int shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    joiner_.defer(shard, range, floats);
  }
  void compute_deferred() override { joiner_.compute_deferred(); }
  Reduced finish() override {
    if (dead_) throw PeerLost("the communicator was aborted");
    DTRAIN_CHECK(roots_ == joiner_.buckets().size(), "leaves of the tree are missing");
    finished_ = true;
    return {std::move(joiner_.first_memory()), {note_}};
  }

 private:
  const Note note_;
  std::atomic<bool>& dead_;
  std::atomic<std::size_t> roots_{0};
  bool finished_ = false;
  LeafJoiner joiner_;
};

class Single final : public HostCommunicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    require_alive();
    return std::make_unique<SingleReduction>(shape, note, pool_, dead_);
  }
  void recycle(FloatBuffer sum) override { pool_.give(std::move(sum)); }

  std::vector<std::string> all_gather(ByteView mine) override {
    require_alive();
    return {std::string(text_of(mine))};
  }
  void send(int, ByteView) override { DTRAIN_CHECK(false, "a rank alone has no peer to send to"); }
  void receive(int, std::span<std::byte>) override { DTRAIN_CHECK(false, "a rank alone has no peer to receive from"); }
  void abort() noexcept override { dead_ = true; }

 private:
  void require_alive() const {
    if (dead_) throw PeerLost("the communicator was aborted");
  }

  FloatPool pool_;
  std::atomic<bool> dead_{false};
};

}  // namespace

std::unique_ptr<Communicator> make_single() { return std::make_unique<Single>(); }

}  // namespace dtrain::comm
