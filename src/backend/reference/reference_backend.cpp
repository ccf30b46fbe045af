#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <dtrain/backend/backend.hpp>
#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "../host_views.hpp"
#include "layers.hpp"
#include "optimizer.hpp"
#include "pass.hpp"

namespace dtrain::backend {
namespace reference {
namespace {

class ReferenceExecutable final : public HostExecutable {
 public:
  ReferenceExecutable(const nn::Graph& graph, const CompileOptions& options)
      : graph_(graph), options_(options), layout_(graph) {
    state_.parameters.assign(static_cast<std::size_t>(graph.parameter_count), 0.0f);
    state_.statistics.assign(static_cast<std::size_t>(graph.statistic_count), 0.0f);
  }

  void enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key, StepSink to) override {
    ContributionSink& sink = to.require_host();
    DTRAIN_CHECK(options_.training, "compiled for evaluation only");
    for (const ShardRange& shard : shards) {
      const HostBatch samples = samples_of(batch, graph_, shard);
      check_labels(samples, graph_.classes());
      contribute(samples, key, sink.buffer(shard));
      sink.ready(shard, 0, layout_.size(), true);
    }
  }

  void synchronize() override {}

  StepMetrics set_sum(StepSum sum) override {
    sum_ = std::get<std::span<const float>>(sum);
    DTRAIN_CHECK(static_cast<std::int64_t>(sum_.size()) == layout_.size(), "not this graph's contribution");
    return backend::metrics_of(layout_, sum_);
  }

  void apply(const Update& update) override {
    const std::span<const float> sum = std::exchange(sum_, {});
    DTRAIN_CHECK(!sum.empty(), "there is no sum to apply");
    const double count = backend::metrics_of(layout_, sum).count;
    DTRAIN_CHECK(count > 0, "a step without samples");
    begin_average(update.rule, state_);
    update_parameters(graph_, sum.first(gradient_count()), count, update, state_);
    update_running_statistics(sum.subspan(gradient_count(), state_.statistics.size()), count);
    update_average(update.rule);
  }

  StepMetrics evaluate(const HostBatch& batch, std::span<const nn::ImageView> views, std::span<float> logits) override {
    return evaluate_views(graph_, options_.top_k, batch, views, logits,
                          [this](const HostBatch& images, std::span<float> of) { return evaluate_images(images, of); });
  }

  const ModelState& state() const override { return state_; }

  void write_state(ModelState state) override {
    DTRAIN_CHECK(state.parameters.size() == state_.parameters.size(), "another graph's parameters");
    DTRAIN_CHECK(state.statistics.size() == state_.statistics.size(), "another graph's statistics");
    DTRAIN_CHECK(state.parameters.empty() || state.optimizer.size() % state.parameters.size() == 0,
                 "the optimizer state is not whole slots");
    check_average(state);
    state_ = std::move(state);
  }

  void exchange_average() override { backend::exchange_average(state_); }

  std::uint64_t planned_bytes() const override {
    std::int64_t per_sample = 0;
    for (const nn::Node& node : graph_.nodes) per_sample += node.output.size();
    const std::int64_t passes = options_.training ? 2 : 1;  // values, and their gradients
    const std::int64_t state = graph_.parameter_count + graph_.statistic_count;
    return sizeof(float) * static_cast<std::uint64_t>(passes * per_sample * options_.max_samples + state);
  }

  Profile profile(const HostBatch& batch, int repeats) override {
    check_labels(batch, graph_.classes());
    const auto nodes = static_cast<int>(graph_.nodes.size());
    std::vector<double> forward(graph_.nodes.size()), backward(graph_.nodes.size());
    for (int repeat = 0; repeat < repeats; ++repeat) {
      Pass pass(pass_input(batch, true, {}));
      std::vector<float> gradients(gradient_count());
      for (int node = 0; node < nodes; ++node) forward[node] += seconds_of([&] { pass.forward_node(node); });
      for (int node = nodes - 1; node > 0; --node) {
        backward[node] += seconds_of([&] { pass.backward_node(node, gradients); });
      }
    }
    Profile profile;
    for (int node = 0; node < nodes; ++node) {
      profile.of_shard.push_back(time_of(graph_.nodes[node], "forward", batch.n, forward[node] / repeats));
      profile.of_shard.push_back(time_of(graph_.nodes[node], "backward", batch.n, backward[node] / repeats));
    }
    return profile;
  }

 private:
  StepMetrics evaluate_images(const HostBatch& batch, std::span<float> logits) const {
    check_labels(batch, graph_.classes());
    if (batch.n == 0) return {};
    Pass pass(pass_input(batch, false, {}));
    pass.forward();
    if (const nn::Detections* const detection = nn::detection_of(graph_)) {
      DTRAIN_CHECK(logits.empty() || std::ssize(logits) == batch.n * detection->result_size(), "rows of what is found");
      if (!logits.empty()) pass.detect(logits);
      return {.count = static_cast<double>(batch.n)};
    }
    if (!logits.empty()) {
      DTRAIN_CHECK(logits.size() == pass.logits().values.size(), "logits are [n, classes]");
      std::ranges::copy(pass.logits().values, logits.begin());
    }
    return softmax_metrics({}, options_.top_k, pass.logits(), {.labels = batch.labels});
  }
  std::size_t gradient_count() const { return static_cast<std::size_t>(layout_.gradients); }

  PassInput pass_input(const HostBatch& samples, bool training, const StepKey& key) const {
    DTRAIN_CHECK(samples.n <= options_.max_samples, "more samples than this was compiled for");
    return {graph_, state_.parameters, state_.statistics, samples, training, key};
  }

  // Fills the whole of one shard's contribution.
  void contribute(const HostBatch& samples, const StepKey& key, std::span<float> contribution) const {
    std::ranges::fill(contribution, 0.0f);
    if (samples.n == 0) return;
    Pass pass(pass_input(samples, true, key));
    pass.forward();
    pass.backward(contribution.first(gradient_count()));

    const auto statistics = contribution.subspan(gradient_count(), state_.statistics.size());
    pass.batch_statistics(statistics);
    for (float& value : statistics) value *= static_cast<float>(samples.n);

    const StepMetrics metrics = metrics_of(pass, samples);
    const auto values = contribution.last(static_cast<std::size_t>(layout_.metrics));
    values[0] = static_cast<float>(metrics.loss_sum);
    values[1] = static_cast<float>(metrics.correct);
    values[2] = static_cast<float>(metrics.top_k_correct);
    values[3] = static_cast<float>(metrics.count);
    for (std::size_t part = layout_.counts; part < values.size(); ++part) {
      values[part] = static_cast<float>(metrics.parts[part - layout_.counts]);
    }
  }

  StepMetrics metrics_of(const Pass& pass, const HostBatch& samples) const {
    if (nn::detection_of(graph_)) return pass.detection_metrics();
    return softmax_metrics(nn::loss_of(graph_), options_.top_k, pass.logits(), samples);
  }

  void update_running_statistics(std::span<const float> weighted, double count) {
    for (const nn::Node& node : graph_.nodes) {
      if (!std::holds_alternative<nn::BatchNorm>(node.layer)) continue;
      const double momentum = nn::statistics_momentum(node);
      for (const int statistic : node.statistics) {
        const nn::TensorView& view = graph_.statistics[statistic];
        for (std::int64_t k = view.offset; k < view.offset + view.size; ++k) {
          const double mean = weighted[k] / count;
          state_.statistics[k] = static_cast<float>(momentum * state_.statistics[k] + (1 - momentum) * mean);
        }
      }
    }
  }

  void update_average(const nn::Optimizer& rule) {
    if (rule.average == 0) return;
    const double decay = nn::average_decay(rule, state_.updates);
    float* average = state_.average.data();
    for (const std::vector<float>* values : {&state_.parameters, &state_.statistics}) {
      for (const float value : *values) {
        *average = static_cast<float>(*average + (1 - decay) * (static_cast<double>(value) - *average));
        ++average;
      }
    }
  }

  template <typename Work>
  static double seconds_of(Work work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static OperationTime time_of(const nn::Node& node, const char* direction, int n, double seconds) {
    const nn::Shape& shape = node.output;
    return {.name = fmt::format("{}.{}", node.name, direction),
            .kind = nn::layer_kind(node.layer),
            .shape = fmt::format("{}x{}x{}x{}", n, shape.c, shape.h, shape.w),
            .seconds = seconds};
  }

  nn::Graph graph_;
  CompileOptions options_;
  ContributionLayout layout_;
  ModelState state_;
  std::span<const float> sum_;  // of the step that is to be applied
};

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "plain loops in float32 with double sums, one thread"; }
  const char* why_not(DType dtype) const override {
    return dtype == DType::float32 ? nullptr : "the reference computes in float32 only";
  }
  DType fastest_dtype() const override { return DType::float32; }
  bool same_bits() const override { return true; }
  BatchWish batches() const override { return {}; }
  std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const override {
    check_dtype(*this, options.dtype);
    return std::make_unique<ReferenceExecutable>(graph, options);
  }
};

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<reference::ReferenceBackend>(); }

}  // namespace dtrain::backend
