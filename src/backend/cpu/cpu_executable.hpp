// A graph compiled for this CPU.
#pragma once

#include <memory>
#include <vector>

#include "lowering/lowering.hpp"
#include "thread_pool.hpp"
#include "update/layer_wise.hpp"
#include "update/muon.hpp"

namespace dtrain::backend::cpu {

inline std::size_t float_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

// Seconds and calls of each operation of a program, on one thread.
struct OpTimes {
  struct Entry {
    double seconds = 0;
    std::vector<std::pair<int, int>> calls;  // samples of a chunk, how often
  };
  std::vector<Entry> entries;
  void add(int op, int count, int calls, double seconds);
};

class CpuExecutable final : public HostExecutable {
 public:
  CpuExecutable(const nn::Graph& graph, const CompileOptions& options);
  ~CpuExecutable() override;

  void enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key, StepSink sink) override;
  void synchronize() override { threads_.wait(); }
  StepMetrics set_sum(StepSum sum) override;
  void apply(const Update& update) override;
  StepMetrics evaluate(const HostBatch& batch, std::span<const nn::ImageView> views, std::span<float> logits) override;
  const ModelState& state() const override { return state_; }
  void write_state(ModelState state) override;
  void exchange_average() override;
  std::uint64_t planned_bytes() const override;
  Profile profile(const HostBatch& batch, int repeats) override;

 private:
  struct Lane;
  struct Step;
  struct Stretch;
  // The weights of a layer as a direction wants them.
  struct Packing {
    ProductLayer* layer = nullptr;
    Direction direction = Direction::forward;
  };

  void prepare(Program& program, int n);
  void prepare_shard(const HostBatch& batch, const ShardRange& shard);
  std::vector<Packing> stale_weights() const;
  void pack_weights();
  void prepare_fixed_norms();
  // The thread's share of them.
  void pack(std::span<const Packing> stale, int thread);
  void weights_changed();
  void grow_lanes(std::size_t number);
  // Shards in lanes: those that meet nowhere are taken as lanes become free.
  void serve(Step& step, int thread);
  bool compute_shard(Step& step, Lane& lane, int member);
  // Shards that meet have a lane each.
  void compute_meeting(Step& step, MeetingSink& sink);
  void walk(Step& step, const Stretch& stretch, int thread);
  // The parts of a shard's way, for each of its threads.
  void begin_shard(Step& step, Lane& lane, int member);
  void run_segments(Step& step, Lane& lane, int member, std::span<const Segment> segments);
  void end_shard(Step& step, Lane& lane, int member);
  void declare_segment(Step& step, Lane& lane, const Segment& segment);
  void declare_rest(Step& step, Lane& lane);
  void run_segment(const Program& program, const Segment& segment, Context& context, int first, int n);
  void declare_ready(Step& step, const ShardRange& shard, std::span<const Part> parts, bool last);
  void declare_deferred(Step& step, const ShardRange& shard, std::vector<std::shared_ptr<DenseFactors>> deferred);
  std::vector<std::shared_ptr<DenseFactors>> factors_of_all(Lane& lane);
  void compute_deferred(Step& step, Lane& lane);
  void gather_followers(Lane& lane, int member);
  int evaluation_block() const;
  StepMetrics evaluate_images(const HostBatch& batch, std::span<float> logits);
  void evaluate_block(const HostBatch& batch, int thread, int block, std::span<float> logits);
  std::vector<OperationTime> profile_operations(const HostBatch& batch, int repeats);
  OperationTime profile_operation(int index, int repeats);
  OperationTime profile_packing(int repeats);
  double memory_rate();

  const nn::Graph graph_;
  const CompileOptions options_;
  const Kernels& kernels_;
  const ContributionLayout layout_;
  Layers layers_;
  Muon muon_;
  LayerWise layer_wise_;
  Lowered training_, evaluation_;
  std::vector<Part> other_parts_;    // what no segment declares as its gradient: final at the end of the shard
  std::vector<Part> written_parts_;  // of a contribution, in a step whose operations defer what they can
  std::vector<Part> leaders_parts_;  // gradients that only a lane's leader writes: other threads clear theirs
  ModelState state_;
  std::span<const float> sum_;                // of the step that is to be applied
  std::vector<Worker> workers_;               // one per thread of the pool
  std::vector<std::unique_ptr<Lane>> lanes_;  // options_.lanes, and more where shards meet
  Buffer running_coefficients_;               // of batch norms, for evaluation
  bool running_stale_ = true;
  std::vector<OpTimes> times_;  // one per thread while profiling, else empty
  ThreadPool threads_;          // last: its threads end before anything they use
};

}  // namespace dtrain::backend::cpu
