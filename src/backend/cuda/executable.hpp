// A graph compiled for a GPU.
//
// Threads: one caller at a time. Work is queued on the device's one stream, in the order of the calls; a call waits for
// the GPU only where it downloads, and in synchronize(). Batches travel on a stream of their own (InputSlots).
// Memory: everything of a fixed size lies in one allocation (MemoryLayout), which recorded steps refer to by address,
// so it never moves. Optimizer state, averages and sums of subtrees are allocated when they are first needed. state_ on
// the host may be older than the device; state() downloads it. Failure: an error of the GPU or of a library throws
// Error, and the executable must not be used again. PeerLost comes from a DeviceSink only; the next enqueue() starts
// the step anew.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "device.hpp"
#include "input/input_slots.hpp"
#include "lowering.hpp"
#include "memory.hpp"
#include "update/state_update.hpp"

namespace dtrain::backend::cuda {

class CudaExecutable final : public Executable {
 public:
  // Throws UsageError when the memory that is free does not hold what the options ask for.
  CudaExecutable(std::shared_ptr<Device> device, const nn::Graph& graph, const CompileOptions& options);

  std::uint64_t stage(const HostBatch& batch) override { return inputs_.stage(batch); }
  void enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key, StepSink sink) override;
  void synchronize() override { device_->synchronize(); }
  std::vector<FloatRange> device_parts() const override;
  StepMetrics set_sum(StepSum sum) override;
  std::optional<double> gradient_norm() override;
  void apply(const Update& update) override;
  StepMetrics evaluate(const HostBatch& batch, std::span<const nn::ImageView> views, std::span<float> logits) override;
  const ModelState& state() const override;
  void write_state(ModelState state) override;
  void exchange_average() override;
  std::int64_t state_size() const override;
  std::vector<float> state_floats(FloatRange range) const override;
  StateNumbers state_numbers() const override { return {state_.updates, state_.loss_scale}; }
  std::uint64_t planned_bytes() const override;
  Profile profile(const HostBatch& batch, int repeats) override;
  Json execution() const override;
  std::vector<std::string> take_warnings() override;

 private:
  // A program on this memory, for one number of samples.
  using Recordings = std::map<int, std::unique_ptr<Recording>>;

  Binding binding(const Program& program, int n) const;
  PackedWeights weight_table() const;
  void upload_tables();
  void upload_samples(const Samples& samples);
  void upload_key(const StepKey& key);
  Call weight_copies() const;
  void pack_weights();
  void run_once(std::vector<Call> calls);
  Call weight_update() const;
  Call gradients_of_copies() const;
  Recording& recording(Recordings& recordings, const Program& program, const Binding& where);
  void check_samples(const HostBatch& batch) const;
  Samples begin_step(const HostBatch& batch, const StepKey& key);
  const Recording& compute_shard(const Samples& batch, const ShardRange& shard, bool unpacks_gradients = true);
  bool updates_from_copies() const;
  void compute_on_host(const Samples& samples, std::span<const ShardRange> shards, ContributionSink& sink);
  void compute_on_device(const Samples& samples, std::span<const ShardRange> shards, DeviceSink& sink);
  float* sum_on_device(const Samples& samples, std::span<const ShardRange> shards);
  void compute_leaf(const Samples& batch, const ShardRange& shard);
  void hand_over(const Samples& batch, const ShardRange& shard, DeviceSink& sink);
  float* slot(std::size_t index);
  void ensure_optimizer(std::size_t slots);
  void ensure_average(const nn::Optimizer& rule);
  std::unique_ptr<DeviceMemory> uploaded(const std::vector<float>& values);
  StepMetrics found_objects(const HostBatch& batch, std::span<float> results);
  bool overflowed(const float* sum);  // a gradient is not finite
  void move_state(float* sum, float count, const Update& update);
  template <typename T>
  T* at(Part part) const {
    return reinterpret_cast<T*>(memory_.data() + layout_.offset(part));
  }

  std::shared_ptr<Device> device_;
  const CompileOptions options_;
  const Model model_;
  const ContributionLayout contribution_;
  const std::vector<ContributionPart> parts_;
  Programs programs_;
  MemoryLayout layout_;
  DeviceMemory memory_;
  InputSlots inputs_;
  StateUpdate update_;
  std::unique_ptr<DeviceMemory> optimizer_, average_;
  std::vector<std::unique_ptr<DeviceMemory>> slots_;  // sums of subtrees of a step, see sum_on_device()
  float* own_sum_ = nullptr;                          // what sum_on_device() left
  float* sum_ = nullptr;                              // on the device: of the step that is to be applied
  float sum_count_ = 0;                               // its samples
  // A rank's only shard may leave the gradients of weights beside their copies, for the update to read them there.
  bool gradients_in_copies_ = false;
  Recordings training_, training_in_copies_, evaluation_;
  std::set<const Recording*> judged_;  // by take_warnings()
  std::set<std::string> warned_;
  bool stale_weights_ = true;         // the copies are older than the parameters
  mutable bool stale_state_ = false;  // state_ is older than what the device holds
  mutable ModelState state_;
};

}  // namespace dtrain::backend::cuda
