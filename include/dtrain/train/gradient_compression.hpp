// Gradients that travel in few bytes, with error feedback: what is not sent now is kept and sent later.
//
//   2bit      MXNet's rule for each float: residual += gradient; the float is sent as +t, -t or 0 where the residual is
//             at least t, at most -t, or between; the residual keeps the rest. A gradient is that of a shard's summed
//             loss.
//   topk      A share of the floats is sent as it is, those with the greatest residuals; of equals the first ones.
//   powersgd  A matrix is sent as two factors of so many columns (src/train/compression/power_sgd.hpp).
//
// Whose residuals. They belong to the V logical shards and are computed from what one shard alone contributes, so the
// number of workers changes no bit. A residual is the difference between what a shard computed and what it sent: no
// other worker can know it, and a copy elsewhere would cost the bytes that compression saves. So the residuals of
// shards live only inside a window of kCompressionWindow steps. In the last step of a window, and of an epoch, each
// shard sends gradient and residual whole, in float32. All ranks then know the sum, compress it alike, by the rule that
// shards use, and apply only what would have been sent. The rest is **held back**: state of the job like the momentum
// (HoldingExecutable), with a place in checkpoints, hashes and what newcomers receive. The next window begins with 1/V
// of it as the residual of each shard. So a window ends with a step as any other, and workers join, leave and stop
// there.
//
// If a worker is lost inside a window, the others return to the state in which the window began, which each of them
// keeps, and compute it again: a lost worker costs at most kCompressionWindow steps.
//
// What travels. The canonical tree (src/comm/tree.hpp) adds the leaves as they were compressed. A leaf of 2bit holds
// -1, 0 or 1, and t is applied to the sum: nodes are whole numbers, exact in any order. Nodes of topk are float32 sums
// of few floats. Both travel without loss (comm::Packing): leaves, interior nodes and the sum alike. powersgd has two
// reductions of small leaves in a step, the second with what came of the first.
//
// Memory of a worker: the gradients of each of its shards once more (powersgd: twice more), what is held back, and two
// copies of the model's state.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/value_range.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/train/local_steps.hpp>

namespace dtrain::train {

enum class Compression { none, two_bit, top_k, power_sgd };
inline constexpr ValueRange kThresholdRange = more_than(0);
inline constexpr ValueRange kShareRange = {.low = 0, .high = 1, .low_is_out = true};
inline constexpr ValueRange kFactorRange = between(1, 1024);
inline constexpr int kCompressionWindow = 32;  // steps

struct GradientCompression {
  Compression kind = Compression::none;
  float threshold = 0.5f;           // t of two_bit
  double share = 0.01;              // of top_k
  int rank = 2;                     // of power_sgd: columns of a factor
  int window = kCompressionWindow;  // other values are for tests
  bool any() const { return kind != Compression::none; }
  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
};

// "none", "2bit:0.5", "topk:0.01", "powersgd:2", with all digits.
std::string compression_text(const GradientCompression& compression);
// The same texts; "2bit" and "powersgd" alone keep the number of `before`. Throws UsageError.
GradientCompression compression_from(const std::string& text, const GradientCompression& before = {});

// Flat buffers of optimizer state in a ModelState: those of local_steps.hpp, and behind them what is held back.
int optimizer_slots(nn::OptimizerKind inner, const LocalSteps& local, const GradientCompression& compression);

class PowerSgd;

// The residuals of a rank's shards. Threads: take(), collect(), left_factors() and right_factors() may be called from
// any thread, for different shards at the same time; all else from the trainer's thread, between two steps. Lifetime: a
// generation, which begins with a window.
class GradientCompressor {
 public:
  // The parameters' gradients are the first floats of each contribution. `shards` of `all_shards` are this rank's.
  GradientCompressor(const GradientCompression& options, std::span<const nn::TensorView> parameters, int all_shards,
                     comm::ShardSpan shards);
  ~GradientCompressor();

  // Comes before the first step of each window.
  void open(std::span<const float> held_back);
  // Comes before each step. `whole`: the last one of a window.
  void begin_step(bool whole);
  std::int64_t gradients() const { return gradients_; }

  // ---- one reduction: where has_factors() is false
  // The shape of the step's reduction, where without compression it has this one.
  comm::ReductionShape shape(comm::ReductionShape plain) const;
  // These floats of the leaf of `shard`, all of them gradients, are computed. Compresses in place what can be
  // compressed now: the range that is ready to be sent, which may be empty.
  FloatRange take(int shard, std::span<float> leaf, FloatRange computed);
  // Of the reduction: the sum of what was sent. Of a whole step, what of it is applied.
  void restore(std::span<float> sum);
  // After restore() of a whole step: whether the rest of its sum is finite. It is not where a gradient of the window
  // was not, though what is applied may be: a float that is not a number is sent as 0 by two_bit.
  bool is_rest_finite() const;
  // After restore() of a whole step: the rest of its sum, to be held back.
  std::vector<float> take_rest() { return std::move(rest_); }

  // ---- two reductions: power_sgd, in each step that is not whole
  bool has_factors() const { return !whole_ && factors_ != nullptr; }
  comm::ReductionShape left_shape(const comm::ReductionShape& plain) const;
  comm::ReductionShape right_shape(const comm::ReductionShape& plain) const;
  // Memory for a contribution of so many floats.
  std::span<float> contribution(int shard, std::int64_t size);
  // These floats of the contribution are computed. Whether all are.
  bool collect(int shard, FloatRange computed);
  // Leaves of the two reductions, with the tail of the contribution behind the first; the sum of the first comes
  // between them.
  void left_factors(int shard, std::span<float> leaf);
  void set_left_sum(std::span<const float> sum);
  void right_factors(int shard, std::span<float> leaf);
  // The sum of all contributions, of the sums of both.
  void expand(std::span<const float> left, std::span<const float> right, std::span<float> sum);

  comm::ShardSpan shards() const { return shards_; }
  std::span<const float> residual(int shard) const { return kept_of(shard).residual; }

 private:
  struct Kept {
    std::vector<float> residual;
    std::vector<float> contribution;       // where there are factors
    std::atomic<std::int64_t> missing{0};  // floats that are not computed in this step
  };
  Kept& kept_of(int shard) const { return kept_[static_cast<std::size_t>(shard - shards_.first)]; }
  void choose_largest(std::span<float> leaf, std::span<float> residual) const;
  void compress_sum(std::span<float> sum, std::span<float> rest);

  const GradientCompression options_;
  const std::int64_t gradients_;
  const int all_shards_;
  const comm::ShardSpan shards_;
  bool whole_ = true;
  std::unique_ptr<Kept[]> kept_;
  std::unique_ptr<PowerSgd> factors_;  // of power_sgd
  std::vector<float> rest_;
};

// Where has_factors(): the second reduction of a step, of the shape `plain` without compression, after the first gave
// `left`. Returns the sum of all contributions, in the memory of `room`.
comm::FloatBuffer add_factors(GradientCompressor& compressor, comm::Communicator& comm,
                              const comm::ReductionShape& plain, comm::FloatBuffer left, comm::FloatBuffer room);

// The rule of two_bit: `gradient` becomes -1, 0 or 1.
void quantise(float threshold, std::span<float> gradient, std::span<float> residual);
// How many of so many floats top_k sends: at least one.
std::int64_t floats_sent(double share, std::int64_t floats);
// What one shard's gradients would travel in, about: the mean over the steps of a window.
std::int64_t bytes_of_leaf(const GradientCompression& compression, std::span<const nn::TensorView> parameters);

}  // namespace dtrain::train
