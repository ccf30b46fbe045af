#include "cpu_executable.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "lane.hpp"
#include "model.hpp"

namespace dtrain::backend::cpu {

CpuExecutable::CpuExecutable(const nn::Graph& graph, const CompileOptions& options)
    : graph_(graph),
      options_(options),
      kernels_(select_kernels()),
      layout_(graph_),
      layers_(graph_, options.dtype),
      muon_(graph_, kernels_, options.lanes * options.threads_per_lane),
      threads_(options.lanes * options.threads_per_lane) {
  if (options.training) {
    training_ = lower_training(graph_, layers_, kernels_, options_);
    training_.program.plan(options.max_samples);
    other_parts_ = training_.program.other_parts(layout_.size());
    written_parts_ = parts_outside(training_.program.deferrable_parts(), layout_.size());
    leaders_parts_ = training_.program.leaders_parts();
  }
  evaluation_ = lower_evaluation(graph_, layers_, kernels_, options_);
  evaluation_.program.plan(evaluation_block());

  for (int thread = 0; thread < threads_.size(); ++thread) {
    Worker worker;
    worker.id = thread;
    worker.stream = dnnl::stream(cpu_engine());
    worker.local.grow(std::max(training_.program.local_bytes(), evaluation_.program.local_bytes()));
    workers_.push_back(std::move(worker));
  }
  if (options.training) grow_lanes(static_cast<std::size_t>(options.lanes));
  running_coefficients_.grow(layers_.coefficient_bytes);
  state_.parameters.assign(static_cast<std::size_t>(graph_.parameter_count), 0.0f);
  state_.statistics.assign(static_cast<std::size_t>(graph_.statistic_count), 0.0f);
}

CpuExecutable::~CpuExecutable() = default;

void CpuExecutable::grow_lanes(std::size_t number) {
  const int threads = options_.threads_per_lane;
  while (lanes_.size() < number) {
    const int group = static_cast<int>(lanes_.size()) % options_.lanes;
    auto lane = std::make_unique<Lane>(group * threads, threads);
    lane->arena.grow(training_.program.arena_bytes());
    lane->coefficients.grow(layers_.coefficient_bytes);
    for (Buffer& helper : lane->helpers) helper.grow(float_bytes(layout_.size()));
    lanes_.push_back(std::move(lane));
  }
}

void CpuExecutable::prepare(Program& program, int n) {
  const SingleThreaded alone;
  program.prepare(n, threads_.size());
  for (Worker& worker : workers_) {
    worker.scratchpad.grow(program.scratchpad_bytes());
    worker.workspace.grow(program.workspace_bytes());
  }
}

// The largest first, so that those of a network with one large layer still divide well among threads.
std::vector<CpuExecutable::Packing> CpuExecutable::stale_weights() const {
  std::vector<Packing> stale;
  for (const auto& layer : layers_.products) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      if (layer && layer->stale(direction) && layer->packing_bytes(direction) > 0)
        stale.push_back({layer.get(), direction});
    }
  }
  std::ranges::stable_sort(stale, std::greater{},
                           [](const Packing& packing) { return packing.layer->packing_bytes(packing.direction); });
  return stale;
}

void CpuExecutable::pack(std::span<const Packing> stale, int thread) {
  for (std::size_t k = static_cast<std::size_t>(thread); k < stale.size(); k += workers_.size()) {
    stale[k].layer->pack(stale[k].direction, state_.parameters.data(),
                         workers_[static_cast<std::size_t>(thread)].stream);
  }
}

void CpuExecutable::pack_weights() {
  const std::vector<Packing> stale = stale_weights();
  if (!stale.empty()) threads_.run([&](int thread) { pack(stale, thread); });
}

// The norms that do not learn, in each lane.
void CpuExecutable::prepare_fixed_norms() {
  for (const auto& norm : layers_.norms) {
    if (!norm || norm->learns) continue;
    for (const auto& lane : lanes_) {
      use_running_statistics(*norm, state_.parameters.data(), state_.statistics.data(), lane->coefficients.data());
    }
  }
}

void CpuExecutable::weights_changed() {
  for (const auto& layer : layers_.products) {
    if (layer) layer->mark_stale();
  }
  running_stale_ = true;
}

StepMetrics CpuExecutable::set_sum(StepSum sum) {
  sum_ = std::get<std::span<const float>>(sum);
  DTRAIN_CHECK(static_cast<std::int64_t>(sum_.size()) == layout_.size(), "not this graph's contribution");
  return metrics_of(layout_, sum_);
}

void CpuExecutable::apply(const Update& update) {
  const std::span<const float> sum = std::exchange(sum_, {});
  DTRAIN_CHECK(!sum.empty(), "there is no sum to apply");
  threads_.wait();
  const InParts in_parts = [&](const std::function<void(int, int)>& work) {
    threads_.run([&](int thread) { work(thread, threads_.size()); });
  };
  apply_update(graph_, kernels_, sum, update, in_parts, muon_, layer_wise_, state_);
  weights_changed();
}

void CpuExecutable::write_state(ModelState state) {
  DTRAIN_CHECK(state.parameters.size() == state_.parameters.size(), "another graph's parameters");
  DTRAIN_CHECK(state.statistics.size() == state_.statistics.size(), "another graph's statistics");
  DTRAIN_CHECK(state.parameters.empty() || state.optimizer.size() % state.parameters.size() == 0,
               "the optimizer state is not whole slots");
  check_average(state);
  threads_.wait();
  state_ = std::move(state);
  weights_changed();
}

void CpuExecutable::exchange_average() {
  threads_.wait();
  backend::exchange_average(state_);
  weights_changed();
}

std::uint64_t CpuExecutable::planned_bytes() const {
  std::uint64_t bytes = running_coefficients_.size() + muon_.bytes() + layer_wise_.bytes();
  for (const Worker& w : workers_) {
    bytes += w.local.size() + w.workspace.size() + w.scratchpad.size();
  }
  for (const auto& lane : lanes_) {
    bytes += lane->arena.size() + lane->coefficients.size();
    for (const Buffer& helper : lane->helpers) bytes += helper.size();
  }
  for (const auto& layer : layers_.products) bytes += layer ? layer->packed_bytes() : 0;
  return bytes + float_bytes(state_size());
}

}  // namespace dtrain::backend::cpu
