// A backend compiles a graph into an executable step. All that persists between steps is a ModelState of flat buffers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/backend/loss_scale.hpp>
#include <dtrain/base/accelerator.hpp>
#include <dtrain/base/deferred_floats.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/objects.hpp>
#include <dtrain/nn/optimizer.hpp>
#include <dtrain/nn/pixels.hpp>
#include <dtrain/nn/views.hpp>

namespace dtrain::backend {

// n samples on the host, borrowed for the duration of a call.
struct HostBatch {
  int n = 0;
  const float* images = nullptr;              // [n, c, h, w], normalised, 64-byte aligned
  const std::int32_t* labels = nullptr;       // [n], each in [0, classes)
  const std::uint32_t* sample_ids = nullptr;  // [n], of record and copy: keys of dropout
  nn::Pixels pixels = {};                     // instead of images, which are null, where BatchWish asks for them
  std::uint64_t staged = 0;                   // handle returned by stage(); 0: the batch was not staged
  // Images of training that are mixtures of two samples have two labels. Null: none is one.
  const std::int32_t* partners = nullptr;  // [n], the second label
  const float* shares = nullptr;           // [n], of the first label in [0, 1]; the rest is the second one's
  // What the samples show, [n], for a detector. Null: images that are filled whole and show nothing.
  const nn::PictureObjects* objects = nullptr;
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
//   [loss sum, correct (top-1), correct in top-k, count]; of two labels each counts by its share
//   [each part of a detector's loss: nn::loss_parts]
struct ContributionLayout {
  std::int64_t gradients = 0;  // number of floats of each part
  std::int64_t statistics = 0;
  static constexpr std::int64_t counts = 4;
  std::int64_t metrics = counts;  // with the parts of the loss
  explicit ContributionLayout(const nn::Graph& graph)
      : gradients(graph.parameter_count),
        statistics(graph.statistic_count),
        metrics(counts + std::ssize(nn::loss_parts(graph))) {}
  std::int64_t size() const { return gradients + statistics + metrics; }
};

// The parts of a loss whose graph has fewer are 0.
using LossParts = std::array<double, 5>;

struct StepMetrics {
  double loss_sum = 0, correct = 0, top_k_correct = 0, count = 0;
  LossParts parts = {};  // sums over the samples, as nn::loss_parts names them
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

// Receives contributions of which the executable may leave large parts to be computed later: it hands over what
// computes them, and they are never written for each shard.
class DeferringSink : public ContributionSink {
 public:
  // In place of ready(), for a part that is not the shard's last: `floats` computes it. The executable writes nothing
  // of it to the buffer.
  virtual void defer(const ShardRange& shard, FloatRange part, std::shared_ptr<const DeferredFloats> floats) = 0;
  // Comes after each defer(), on as many of the executable's threads as have nothing else to do.
  virtual void compute_deferred() = 0;
};

// Receives the contributions of shards that meet at each synchronized batch norm (nn/synchronized_norms.hpp): all
// shards of a step are computed at the same time, on all ranks.
class MeetingSink : public ContributionSink {
 public:
  // `mine`: rows of the shards of this enqueue(), in their order. Gives the rows of all shards of the step in their
  // order, the same on all ranks. Blocks until all ranks are there. On the thread that called enqueue().
  virtual std::vector<double> gather(std::span<const double> mine) = 0;
};

// Receives contributions that stay on the GPU where they are computed. One thread, that of Executable::enqueue().
class DeviceSink {
 public:
  virtual ~DeviceSink() = default;
  // Comes first. The sum of the step before may be overwritten when `mark` is reached.
  virtual void begin(DeviceMark mark) = 0;
  // Part `part` of Executable::device_parts() lies at `values` when `ready` is reached. Shards and parts in order.
  virtual void take(const ShardRange& shard, int part, const float* values, DeviceMark ready) = 0;
  // When it is reached, all that was taken of the shards before the last one may be overwritten.
  virtual DeviceMark taken() = 0;
};

// The executable adds the contributions up itself and keeps the sum on its device. For a rank without peers: its shards
// are all of the step, 0 to V - 1 in order, V a power of two, and are added by the canonical tree (left + right).
struct OwnSum {};
// Subtrees of so many shards that wait for their siblings, at most.
constexpr int waiting_subtrees(int shards) { return std::bit_width(static_cast<unsigned>(shards)) - 1; }

// Where the contributions of a step go. An executable whose device_parts() are empty computes on the host and takes a
// ContributionSink only; one whose norms can meet takes a MeetingSink too.
class StepSink {
 public:
  StepSink(ContributionSink& sink) : to_(&sink) {}
  StepSink(DeferringSink& sink) : to_(&sink) {}
  StepSink(MeetingSink& sink) : to_(&sink) {}
  StepSink(DeviceSink& sink) : to_(&sink) {}
  StepSink(OwnSum own) : to_(own) {}
  ContributionSink* host() const;  // nullptr: another one, or shards meet
  DeferringSink* deferring() const;
  MeetingSink* meeting() const;
  DeviceSink* device() const;
  // DTRAIN_CHECKs that it is one: what an executable that computes on the host says to all others.
  ContributionSink& require_host() const;

 private:
  std::variant<ContributionSink*, DeferringSink*, MeetingSink*, DeviceSink*, OwnSum> to_;
};

// The sum over all shards of a step: on the host, in memory of the executable's GPU that nothing else uses before
// apply() is done, or the one that the executable made.
using StepSum = std::variant<std::span<const float>, float*, OwnSum>;

// Everything that persists between steps, on the host.
struct ModelState {
  std::vector<float> parameters;  // graph.parameter_count
  std::vector<float> statistics;  // graph.statistic_count
  std::vector<float> optimizer;   // optimizer_slots x parameter_count
  std::uint64_t updates = 0;      // applied steps (Adam's t)
  LossScale loss_scale = {};      // of float16; else it stays as it is
  // Over the steps, of the parameters and behind them the statistics: see nn::Optimizer::average. Empty: there is none.
  std::vector<float> average = {};
};

// Its buffers, in the order in which they are sent and hashed.
inline constexpr std::array kStateBuffers = {&ModelState::parameters, &ModelState::statistics, &ModelState::optimizer,
                                             &ModelState::average};

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
  // Rule of the updates to come, so that its memory is reserved with the rest; empty: reserved at the first update.
  std::optional<nn::OptimizerKind> optimizer = {};
  bool average = false;      // of weights: its memory is reserved with the rest
  bool layer_decay = false;  // the rates of layers differ: likewise
  // Of a training step: compile() refuses a step that does not fit into the device's memory.
  int shards = 1;                 // of this rank, each of up to max_samples; a batch has all of them
  bool batches_as_bytes = false;  // as BatchWish asks; else as floats
  int waiting_sums = 0;           // contributions on the device beside the shard's own: subtrees, what others sent
};

// One operation of a step: what it takes of one lane in a pass.
struct OperationTime {
  std::string name{}, kind{}, shape{};
  double seconds = 0;
  double bare_seconds = 0;  // the same primitive alone on the same shape, measured now; 0 where there is none
  std::uint64_t bytes = 0;  // that the pass must read from memory and write to it; 0 where the backend does not know
};

struct Profile {
  std::vector<OperationTime> of_shard, of_step;
  double bytes_per_second = 0;  // what a lane moves to and from memory while all lanes do; 0: not measured
};

// A step is enqueue(), the sum of what all ranks contributed, set_sum() and apply(). Call from one thread at a time.
// Throws DataError if a gradient is asked of labels out of range; Error if memory is short.
class Executable {
 public:
  virtual ~Executable() = default;

  // Begins to bring a batch to where it will be computed, beside the work that is under way. Its memory must stay as it
  // is until the call that gets it with `staged` = the result has done its work; it may never come. Keeps up to two.
  // 0: this executable computes where the batch is.
  virtual std::uint64_t stage(const HostBatch& batch) = 0;

  // The parts in which contributions become final on the device, in that order, the same for all executables of a
  // graph; gradients apart from what follows them. Empty: contributions are computed on the host.
  virtual std::vector<FloatRange> device_parts() const = 0;

  // Forward and backward of the shards, lanes in parallel; changes no persistent state. May return before the work is
  // done; batch and sink must stay alive until synchronize(). A size seen for the first time is compiled first.
  virtual void enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key,
                       StepSink sink) = 0;
  // Waits for all that was enqueued; rethrows what went wrong in it.
  virtual void synchronize() = 0;
  // The sum over all shards of the step; what it lies in must stay as it is until apply() returns. Gives what was
  // counted.
  virtual StepMetrics set_sum(StepSum sum) = 0;
  // Between set_sum() and apply(): the length of the gradient of the mean loss. Takes a pass over all gradients.
  // nullopt: the sum lies on the host, with the caller.
  virtual std::optional<double> gradient_norm() = 0;
  // One local phase: gradients are divided by the sum's count, then the optimizer moves parameters, then running
  // statistics take the weighted mean of the batch statistics. In float16, a sum with a gradient that is not finite
  // moves nothing but the loss scale. Once for each set_sum(). An average that the rule asks for and that is not there
  // begins as what was before the update.
  virtual void apply(const Update& update) = 0;
  void apply(std::span<const float> sum, const Update& update);  // set_sum() and apply()

  // Forward with running statistics, once for each view of the images. `logits`, empty or [n, nn::result_size], takes
  // the mean of the views' logits, and that mean is what is counted. loss_sum is that of plain cross-entropy (no label
  // smoothing). A detector's result is what it found in the one view that it takes, and nothing but samples is counted.
  virtual StepMetrics evaluate(const HostBatch& batch, std::span<const nn::ImageView> views,
                               std::span<float> logits) = 0;
  StepMetrics evaluate(const HostBatch& batch, std::span<float> logits = {});  // one view: the image as it is

  // What persists, to be read only until the next apply() or write_state(). Not while enqueued work runs.
  virtual const ModelState& state() const = 0;
  ModelState read_state() const { return state(); }  // a copy
  // A few of its floats: parameters, statistics and optimizer as one row. Where they lie on a GPU the others stay
  // there.
  virtual std::int64_t state_size() const = 0;
  virtual std::vector<float> state_floats(FloatRange range) const = 0;
  virtual StateNumbers state_numbers() const = 0;
  virtual void write_state(ModelState state) = 0;  // DTRAIN_CHECKs the sizes; move a large one in
  // Parameters and statistics change places with their average, for evaluations between two steps; a second call puts
  // them back. Nothing where there is no average.
  virtual void exchange_average() = 0;

  // Bytes of buffers planned for the sizes compiled so far.
  virtual std::uint64_t planned_bytes() const = 0;
  // Where the time of a step with the batch as each shard goes, the mean of so many passes.
  virtual Profile profile(const HostBatch& batch, int repeats) = 0;
  // How a step of the largest shard so far is done on a GPU, {"recorded": it is one launch, "by_definition": number of
  // convolutions that no library computes, "convolutions": [{"op", "direction", "engine"}]}; null on the host.
  virtual Json execution() const = 0;
  // What is done much slower than it should be, a sentence each, as far as it was not said before.
  virtual std::vector<std::string> take_warnings() = 0;
};

// An executable that computes in the memory of the host, where its batches, contributions and state are.
class HostExecutable : public Executable {
 public:
  std::uint64_t stage(const HostBatch& batch) override;
  std::vector<FloatRange> device_parts() const final;
  std::optional<double> gradient_norm() final;
  std::int64_t state_size() const final;
  std::vector<float> state_floats(FloatRange range) const final;
  StateNumbers state_numbers() const final;
  Json execution() const final;
  std::vector<std::string> take_warnings() override;  // none
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
  virtual bool same_bits() const = 0;
  virtual BatchWish batches() const = 0;
  // Throws UsageError when dtype is not supported here. The graph is copied; all state begins as zeros.
  virtual std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const = 0;
};

std::unique_ptr<Backend> make_reference_backend();  // plain loops in float32 (double sums): slow and obvious, the judge
std::unique_ptr<Backend> make_cpu_backend();        // oneDNN

}  // namespace dtrain::backend
