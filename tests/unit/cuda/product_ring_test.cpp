// How the loader and the consumers of a block hand stages over, in any order.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "gpu/native/product_layout.hpp"

namespace dtrain::backend::cuda {
namespace {

// PTX ISA, "mbarrier": a wait for a parity ends when the phase of that parity is complete; of a new one, 1 is.
class Barrier {
 public:
  explicit Barrier(int arrivals) : arrivals_(arrivals), pending_(arrivals) {}
  void arrive(int bytes_to_come = 0) {
    ASSERT_GT(pending_, 0);
    bytes_ += bytes_to_come;
    --pending_;
    end_phase();
  }
  void receive(int bytes) {
    bytes_ -= bytes;
    end_phase();
  }
  bool is_over(std::uint32_t parity) const { return phase_ % 2 != parity; }

 private:
  void end_phase() {
    if (pending_ > 0 || bytes_ != 0) return;
    pending_ = arrivals_;
    ++phase_;
  }
  const int arrivals_;
  int pending_, bytes_ = 0;
  std::uint32_t phase_ = 0;
};

// Loader, copies and warps of consumers, in some order. What a stage holds is the number of a block of k.
class RingRun {
 public:
  RingRun(int stages, int blocks, std::uint32_t seed)
      : blocks_(blocks),
        random_(seed),
        held_(static_cast<std::size_t>(stages), -1),
        loader_{stages},
        warps_(kConsumerWarps, Warp{{stages}}) {
    for (int stage = 0; stage < stages; ++stage) {
      full_.emplace_back(1);
      empty_.emplace_back(kConsumerWarps);
    }
  }
  // False: nothing can go on.
  bool run() {
    while (true) {
      std::vector<std::function<void()>> possible;
      if (loaded_ < blocks_ && at(empty_, loader_.stage).is_over(loader_.phase_before()))
        possible.emplace_back([this] { load(); });
      for (std::size_t k = 0; k < copies_.size(); ++k) possible.emplace_back([this, k] { land(k); });
      for (Warp& warp : warps_) {
        if (warp.done < blocks_ && at(full_, warp.ring.stage).is_over(warp.ring.phase()))
          possible.emplace_back([this, &warp] { multiply(warp); });
      }
      if (possible.empty()) break;
      possible[random_() % possible.size()]();
      if (::testing::Test::HasFatalFailure()) return false;
    }
    return loaded_ == blocks_ && std::ranges::all_of(warps_, [&](const Warp& warp) { return warp.done == blocks_; });
  }

 private:
  struct Warp {
    StageRing ring;
    int done = 0, before = 0, reads = -1;
  };
  struct Copy {
    int stage, block;
  };
  static Barrier& at(std::vector<Barrier>& barriers, int stage) { return barriers[static_cast<std::size_t>(stage)]; }

  void load() {
    at(full_, loader_.stage).arrive(1);
    copies_.push_back({loader_.stage, loaded_++});
    loader_.next();
  }
  void land(std::size_t k) {
    const Copy copy = copies_[k];
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(k));
    // A warp reads a stage until it has waited for the product, which it does behind the next one's start.
    for (const Warp& warp : warps_) ASSERT_NE(warp.reads, copy.stage) << "what is being read is overwritten";
    held_[static_cast<std::size_t>(copy.stage)] = copy.block;
    at(full_, copy.stage).receive(1);
  }
  void multiply(Warp& warp) {
    ASSERT_EQ(held_[static_cast<std::size_t>(warp.ring.stage)], warp.done);
    if (warp.done > 0) at(empty_, warp.before).arrive();
    warp.before = warp.reads = warp.ring.stage;
    warp.ring.next();
    if (++warp.done < blocks_) return;
    warp.reads = -1;
    at(empty_, warp.before).arrive();
  }

  const int blocks_;
  std::minstd_rand random_;
  std::vector<int> held_;
  std::vector<Barrier> full_, empty_;
  StageRing loader_;
  int loaded_ = 0;
  std::vector<Copy> copies_;
  std::vector<Warp> warps_;
};

TEST(CudaProduct, HandsStagesOverInAnyOrder) {
  for (const int stages : {2, 3, 5}) {
    for (const int blocks : {1, 2, 3, 5, 6, 40}) {
      for (std::uint32_t seed = 1; seed <= 30; ++seed) {
        ASSERT_TRUE(RingRun(stages, blocks, seed).run()) << stages << " stages, " << blocks << " blocks, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
