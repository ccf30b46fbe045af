// Gradients that travel in few bytes, with error feedback: what is not sent now is kept and sent later.
//
//   2bit   MXNet's rule for each float: residual += gradient; the float is sent as +t, -t or 0 where the residual is at
//          least t, at most -t, or between; the residual keeps the rest. A gradient is that of a shard's summed loss.
//   topk   A share of the floats is sent as it is, those with the greatest residuals; of equals the first ones.
//
// Whose residuals. They belong to the V logical shards and are computed from what one shard alone contributes, so the
// number of workers changes no bit. A residual is the difference between what a shard computed and what it sent: no
// other worker can know it, and a copy elsewhere would cost the bytes that compression saves. So residuals live only
// inside a window of kCompressionWindow steps. The last step of a window, and of an epoch, sends gradient and residual
// of each shard whole, in float32. Between two windows there are none: checkpoints, hashes and newcomers need nothing
// new, and workers join, leave and stop there. If a worker is lost inside a window, the others return to the state in
// which the window began, which each of them keeps, and compute it again. So what travels whole is one step in
// kCompressionWindow, and a lost worker costs at most so many steps.
//
// What travels. The canonical tree (src/comm/tree.hpp) adds the leaves as they were compressed. A leaf of 2bit holds
// -1, 0 or 1, and t is applied to the sum: nodes are whole numbers, exact in any order. Nodes of topk are float32 sums
// of few floats. Both travel without loss (comm::Packing): leaves, interior nodes and the sum alike.
//
// Memory of a worker: the gradients of each of its shards once more, and a copy of the model's state.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/value_range.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::train {

enum class Compression { none, two_bit, top_k };
inline constexpr ValueRange kThresholdRange = more_than(0);
inline constexpr ValueRange kShareRange = {.low = 0, .high = 1, .low_is_out = true};
inline constexpr int kCompressionWindow = 32;  // steps

struct GradientCompression {
  Compression kind = Compression::none;
  float threshold = 0.5f;           // t of two_bit
  double share = 0.01;              // of top_k
  int window = kCompressionWindow;  // other values are for tests
  bool any() const { return kind != Compression::none; }
  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
};

// "none", "2bit:0.5", "topk:0.01", with all digits.
std::string compression_text(const GradientCompression& compression);
// The same texts; "2bit" alone keeps the threshold of `before`. Throws UsageError.
GradientCompression compression_from(const std::string& text, const GradientCompression& before = {});

// The residuals of a rank's shards. Threads: take() may be called from any thread, for different shards at the same
// time; all else from the trainer's thread, between two steps. Lifetime: a generation, which begins with a window.
class GradientCompressor {
 public:
  // The first `gradients` floats of each contribution are compressed.
  GradientCompressor(const GradientCompression& options, std::int64_t gradients, comm::ShardSpan shards);

  // Comes before each step. `whole`: it sends all that is held back.
  void begin_step(bool whole);
  // The shape of the step's reduction, where without compression it has this one.
  comm::ReductionShape shape(comm::ReductionShape plain) const;
  std::int64_t gradients() const { return gradients_; }
  // These floats of the leaf of `shard`, all of them gradients, are computed. Compresses in place what can be
  // compressed now: the range that is ready to be sent, which may be empty.
  FloatRange take(int shard, std::span<float> leaf, FloatRange computed);
  // Of the reduction: the sum of what was sent.
  void restore(std::span<float> sum) const;

  std::span<const float> residual(int shard) const { return kept_of(shard).residual; }

 private:
  struct Kept {
    std::vector<float> residual;
    std::atomic<std::int64_t> missing{0};  // gradients that are not computed in this step
  };
  Kept& kept_of(int shard) const { return kept_[static_cast<std::size_t>(shard - shards_.first)]; }
  void choose_largest(std::span<float> leaf, std::span<float> residual) const;

  const GradientCompression options_;
  const std::int64_t gradients_;
  const comm::ShardSpan shards_;
  bool whole_ = true;
  std::unique_ptr<Kept[]> kept_;
};

// The rule of two_bit: `gradient` becomes -1, 0 or 1.
void quantise(float threshold, std::span<float> gradient, std::span<float> residual);
// How many of so many floats top_k sends: at least one.
std::int64_t floats_sent(double share, std::int64_t floats);
// What one shard's gradients would travel in, about: the mean over the steps of a window.
std::int64_t bytes_of_leaf(const GradientCompression& compression, std::int64_t floats);

}  // namespace dtrain::train
