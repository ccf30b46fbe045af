// Local steps, as Local SGD (Stich 2019) and DiLoCo (Douillard et al. 2023) make them. The V logical shards of a step
// are replicas: each takes H inner steps of its own, from the same weights, on its own samples, and only then they
// exchange what they learned. Such a round is one step of the trainer: its samples are those of H inner steps, what a
// shard contributes is what its replica learned, and apply() is the outer step.
//
// Between two rounds there is one state, the same on all workers: each round begins for every replica with the mean of
// the weights (moved by the outer optimizer), of the inner optimizer's state and of the running statistics. So a worker
// that is lost takes nothing with it but the round, and the number of workers changes no bit.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::train {

// With d the mean over replicas of (weights before the round - weights after it), by number of samples:
//   average   w -= d: the mean of the replicas
//   sgd       w -= rate*d
//   nesterov  m = momentum*m + d; w -= rate*(d + momentum*m)
enum class OuterOptimizer { average, sgd, nesterov };
inline constexpr EnumName<OuterOptimizer> kOuterOptimizerNames[] = {
    {OuterOptimizer::nesterov, "nesterov"}, {OuterOptimizer::sgd, "sgd"}, {OuterOptimizer::average, "average"}};
inline constexpr int kMostLocalSteps = 65536;
inline constexpr ValueRange kOuterRateRange = more_than(0);
inline constexpr ValueRange kOuterMomentumRange = between(0, 1);

struct LocalSteps {
  int steps = 1;  // H, inner steps of a round; 1: there are no rounds, gradients are exchanged in each step
  OuterOptimizer outer = OuterOptimizer::nesterov;
  float rate = 0.7f, momentum = 0.9f;  // of the outer optimizer, as in DiLoCo; average uses neither, sgd no momentum
  bool any() const { return steps > 1; }
  friend bool operator==(const LocalSteps&, const LocalSteps&) = default;
};

Json to_json(const LocalSteps& local);
LocalSteps local_steps_from_json(const Json& json);  // DataError, UsageError

// Flat buffers of optimizer state in a ModelState: the inner optimizer's, then those of the outer one.
int optimizer_slots(nn::OptimizerKind inner, const LocalSteps& local);

// Inner steps of a round of `samples`, where a whole round of `local.steps` has `whole`: 1 to local.steps.
int inner_steps(const LocalSteps& local, int whole, int samples);
// Part j of so many holds the samples floor(j*n/parts) to floor((j+1)*n/parts)-1 of the shard's n; all keep its index.
std::vector<backend::ShardRange> inner_parts(const backend::ShardRange& shard, int parts);

// What the replicas do in the round to come.
struct Round {
  std::vector<backend::Update> updates;  // of each inner step; their rules have no average
  // Called on the caller's thread after each inner step of that thread; may be empty. An exception of it ends the
  // round.
  std::function<void()> between = {};
};

// An executable whose step is a round. Replicas are computed side by side, one at a time by each executable that it is
// made of, so how many these are changes no bit. A contribution has, in this order and as sums over the replica's
// samples: the weights' movement, the inner optimizer's state, the running statistics; then the metrics of
// ContributionLayout.
class LocalExecutable final : public backend::HostExecutable {
 public:
  // `replicas`: at least one, each for training by the optimizer `inner`. `judge` evaluates.
  LocalExecutable(const nn::Graph& graph, const LocalSteps& local, nn::OptimizerKind inner,
                  std::vector<std::unique_ptr<backend::Executable>> replicas,
                  std::unique_ptr<backend::Executable> judge);

  std::int64_t contribution_size() const;
  // Comes before each enqueue().
  void begin_round(Round round);

  // Returns when the round is computed. Throws soon, not at the end of the round, what any of its steps threw.
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override;
  void synchronize() override {}
  backend::StepMetrics set_sum(backend::StepSum sum) override;
  void apply(const backend::Update& update) override;  // the outer step; the update is of no account
  using backend::HostExecutable::apply;
  using backend::HostExecutable::evaluate;
  backend::StepMetrics evaluate(const backend::HostBatch& batch, std::span<const nn::ImageView> views,
                                std::span<float> logits) override;
  const backend::ModelState& state() const override { return state_; }
  void write_state(backend::ModelState state) override;
  void exchange_average() override {}  // there is none
  std::uint64_t planned_bytes() const override;
  backend::Profile profile(const backend::HostBatch& batch, int repeats) override;
  std::vector<std::string> take_warnings() override;  // those of what it is made of

 private:
  void train_replica(backend::Executable& replica, const backend::HostBatch& batch, const backend::ShardRange& shard,
                     const backend::StepKey& key, backend::ContributionSink& sink,
                     const std::function<void()>& between);
  backend::ModelState inner_state() const;
  void outer_step(std::span<const float> movement, float count);

  const nn::Graph graph_;
  const LocalSteps local_;
  const std::size_t inner_slots_;
  std::vector<std::unique_ptr<backend::Executable>> replicas_;
  std::unique_ptr<backend::Executable> judge_;
  backend::ModelState state_;
  bool judge_is_current_ = false;
  Round round_;
  std::span<const float> sum_;
  std::set<std::string> warned_;
};

// With options as for an executable that computes all shards of an inner step: its lanes become the replicas that are
// computed side by side.
std::unique_ptr<LocalExecutable> compile_local(const backend::Backend& backend, const nn::Graph& graph,
                                               const backend::CompileOptions& options, const LocalSteps& local,
                                               nn::OptimizerKind inner);

}  // namespace dtrain::train
