// A backend compiles a graph into an executable step. All that persists between steps is a ModelState of flat buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/backend/loss_scale.hpp>
#include <dtrain/base/accelerator.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/optimizer.hpp>
#include <dtrain/nn/pixels.hpp>

namespace dtrain::backend {

// n samples on the host, borrowed for the duration of a call.
struct HostBatch {
  int n = 0;
  const float* images = nullptr;              // [n, c, h, w], normalised, 64-byte aligned
  const std::int32_t* labels = nullptr;       // [n], each in [0, classes)
  const std::uint32_t* sample_ids = nullptr;  // [n], the record's position in its file: keys of dropout
  nn::Pixels pixels = {};                     // in the place of images, which are null, where BatchWish asks for them
  std::uint64_t staged = 0;                   // what stage() called this batch; 0: nobody brought it there
};

// How a backend would have its batches.
struct BatchWish {
  bool as_bytes = false;  // HostBatch::pixels
  // Memory that it copies from without waiting, aligned to 64 bytes, for any thread to let go of. Empty: it has none.
  std::function<std::shared_ptr<std::byte>(std::size_t)> memory;
};

// Logical shard `index` of the step: samples [first, first + count) of the batch. An empty shard contributes zeros.
struct ShardRange {
  int index = 0;
  int first = 0;
  int count = 0;
};

// What dropout is keyed by, besides sample id, node and element:
// element e of node k (index in Graph::nodes) of sample s is kept iff word (e mod 4) of
// philox({e / 4, k, s, epoch}, {low(seed), high(seed) ^ RandomUse::dropout}) >= p * 2^32.
struct StepKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
};

// What one shard adds to a step, as one flat float32 buffer that sums over shards by plain addition:
//   [gradients of the SUM of the samples' losses: parameter_count]
//   [batch-norm statistics, each weighted by the shard's count: statistic_count]
//   [loss sum, correct (top-1), correct in top-k, count]
struct ContributionLayout {
  std::int64_t gradients = 0;  // number of floats of each part
  std::int64_t statistics = 0;
  static constexpr std::int64_t metrics = 4;
  explicit ContributionLayout(const nn::Graph& graph)
      : gradients(graph.parameter_count), statistics(graph.statistic_count) {}
  std::int64_t size() const { return gradients + statistics + metrics; }
};

struct StepMetrics {
  double loss_sum = 0, correct = 0, top_k_correct = 0, count = 0;
};
StepMetrics metrics_of(const ContributionLayout& layout, std::span<const float> contribution);

// Receives contributions. Both calls come from any of the executable's threads, different shards at the same time.
class ContributionSink {
 public:
  virtual ~ContributionSink() = default;
  // Memory for the shard's contribution, ContributionLayout::size() floats, any content; valid until ready() returns.
  virtual std::span<float> buffer(const ShardRange& shard) = 0;
  // The buffer's part [first, first + size) is final and will not change. The last part of a shard is marked.
  virtual void ready(const ShardRange& shard, std::int64_t first, std::int64_t size, bool last) = 0;
};

// Receives contributions that stay on the GPU where they are computed. One thread, that of enqueue_here().
class DeviceSink {
 public:
  virtual ~DeviceSink() = default;
  // First of all: nobody uses the sum of the step before when `mark` is reached.
  virtual void begin(DeviceMark mark) = 0;
  // Part `part` of Executable::parts_here() lies at `values` when `ready` is reached. Shards and parts in order.
  virtual void take(const ShardRange& shard, int part, const float* values, DeviceMark ready) = 0;
  // When it is reached, all that was taken may be overwritten.
  virtual DeviceMark taken() = 0;
};

// Everything that persists between steps, on the host.
struct ModelState {
  std::vector<float> parameters;  // graph.parameter_count
  std::vector<float> statistics;  // graph.statistic_count
  std::vector<float> optimizer;   // optimizer_slots x parameter_count
  std::uint64_t updates = 0;      // applied steps (Adam's t)
  LossScale loss_scale = {};      // of float16; else it stays as it is
};

// What a ModelState holds beside its floats.
struct StateNumbers {
  std::uint64_t updates = 0;
  LossScale loss_scale = {};
};

// One optimizer step: the learning rate of this step with the rule.
struct Update {
  nn::Optimizer rule;
  float learning_rate = 0;
};

struct CompileOptions {
  DType dtype = DType::float32;
  int lanes = 1;             // shards computed side by side, each by exactly one thread...
  int threads_per_lane = 1;  // ...or, with one lane, one shard by this many
  int max_samples = 0;       // largest shard or evaluation block that will be asked for
  int top_k = 5;             // capped at the number of classes
  bool training = true;      // false: evaluate() and logits() only, less memory
  // Of the updates to come, so that what it needs is reserved with the rest; empty: when it is first met.
  std::optional<nn::OptimizerKind> optimizer = {};
};

// Call from one thread at a time. Throws DataError if a gradient is asked of labels out of range; Error if memory is
// short.
class Executable {
 public:
  virtual ~Executable() = default;

  // Begins to bring a batch to where it will be computed, beside the work that is under way. Its memory must stay as it
  // is until the call that gets it with `staged` = the result has done its work; it may never come. Keeps up to two.
  // 0: this executable computes where the batch is.
  virtual std::uint64_t stage(const HostBatch& /*batch*/) { return 0; }

  // Forward and backward of the shards, lanes in parallel; changes no persistent state. May return before the work is
  // done; batch and sink must stay alive until synchronize(). A size seen for the first time is compiled first.
  virtual void enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key,
                       ContributionSink& sink) = 0;
  // Waits for all that was enqueued; rethrows what went wrong in it.
  virtual void synchronize() = 0;

  // One local phase: gradients are divided by the contribution's count, then the optimizer moves parameters, then
  // running statistics take the weighted mean of the batch statistics. `contribution` is the sum over all shards of the
  // step. In float16, a sum with a gradient that is not finite moves nothing but the loss scale.
  virtual void apply(std::span<const float> contribution, const Update& update) = 0;

  // For a rank without peers, on a backend with memory of its own: the contributions of all shards of a step, 0 to V -
  // 1 in order, V a power of two, are added by the canonical tree over V (left + right) and stay where they were
  // computed. Gives what was counted. nullopt: not here, use enqueue() and apply().
  virtual std::optional<StepMetrics> sum_here(const HostBatch& /*batch*/, std::span<const ShardRange> /*shards*/,
                                              const StepKey& /*key*/) {
    return std::nullopt;
  }
  // For a rank with peers, likewise: the parts in which contributions become final here, in that order, the same for
  // all executables of a graph; gradients apart from what follows them. Empty: not here, use enqueue().
  virtual std::vector<FloatRange> parts_here() const { return {}; }
  // As enqueue(), and returns before the work is done.
  virtual void enqueue_here(const HostBatch& /*batch*/, std::span<const ShardRange> /*shards*/, const StepKey& /*key*/,
                            DeviceSink& /*sink*/) {}
  // The sum over all shards of the step, in memory of this GPU that nobody else uses before apply_here() is done.
  virtual StepMetrics take_sum(float* /*sum*/) { return {}; }
  // apply() of the sum that sum_here() left, or take_sum() was given; only after that.
  virtual void apply_here(const Update& /*update*/) {}

  // Forward with running statistics. `logits` is empty or [n, classes]. loss_sum is that of plain cross-entropy
  // (no label smoothing).
  virtual StepMetrics evaluate(const HostBatch& batch, std::span<float> logits = {}) = 0;

  // What persists, to be read only until the next apply() or write_state(). Not while enqueued work runs.
  virtual const ModelState& state() const = 0;
  ModelState read_state() const { return state(); }  // a copy
  // A few of its floats: parameters, statistics and optimizer as one row. Where they lie on a GPU the others stay
  // there.
  virtual std::int64_t state_size() const;
  virtual std::vector<float> state_floats(FloatRange range) const;
  virtual StateNumbers state_numbers() const { return {state().updates, state().loss_scale}; }
  virtual void write_state(ModelState state) = 0;  // DTRAIN_CHECKs the sizes; move a large one in

  // Bytes of buffers planned for the sizes compiled so far, and the operations with their time, for `bench train`:
  // [{"op", "kind", "shape", "calls", "seconds", "bare_seconds"}]; bare_seconds: the same primitive alone on the same
  // shape, measured now (0 where the operation has none).
  virtual std::uint64_t planned_bytes() const = 0;
  virtual Json profile(const HostBatch& batch, int repeats) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // "cpu", "reference"
  virtual std::string description() const = 0;  // library, version, instruction set: for people and the fingerprint
  // nullptr if this machine can compute in dtype, else the reason in one sentence.
  virtual const char* why_not(DType dtype) const = 0;
  // What --dtype auto means here: the type that trains fastest. A fixed fact of the machine, not a measurement.
  virtual DType fastest_dtype() const = 0;
  // What it computes again has the same bits, here and wherever the description is the same.
  virtual bool same_bits() const { return true; }
  virtual BatchWish batches() const { return {}; }
  // Throws UsageError when dtype is not supported here. The graph is copied; all state begins as zeros.
  virtual std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const = 0;
};

std::unique_ptr<Backend> make_reference_backend();  // plain loops in float32 (double sums): slow and obvious, the judge
std::unique_ptr<Backend> make_cpu_backend();        // oneDNN

}  // namespace dtrain::backend
