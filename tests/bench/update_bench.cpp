// What a step of the optimizer costs on the CPU backend, beside the forward and backward pass of a batch: each rule's
// apply() alone. Nothing is compared, nothing can fail.
// usage: dtrain_update_bench [NETWORK [LAYERS [WIDTH [THREADS [BATCH]]]]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/parameter_groups.hpp>

namespace {

using namespace dtrain;

class Sink final : public backend::ContributionSink {
 public:
  explicit Sink(std::int64_t size) : sum(static_cast<std::size_t>(size)) {}
  std::span<float> buffer(const backend::ShardRange&) override { return sum; }
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}
  std::vector<float> sum;
};

// The best of what two seconds have room for, at least two.
template <typename Work>
double best_seconds(Work work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::seconds(2);
  for (int run = 0; run < 3 || Clock::now() < end; ++run) {
    const auto start = Clock::now();
    work();
    if (run > 0) best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// Multiplications of one step of muon: X X', its square, and B X, as often as it iterates.
double muon_multiplications(const nn::Graph& graph, int steps) {
  double sum = 0;
  for (const nn::WeightMatrix& m : nn::weight_matrices(graph)) {
    const double low = std::min(m.rows, m.columns), high = std::max(m.rows, m.columns);
    sum += steps * (2 * low * low * high + low * low * low);
  }
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int k, const char* otherwise) { return std::string(k < count ? arguments[k] : otherwise); };
  const auto number = [&](int k, const char* otherwise) { return std::atoi(argument(k, otherwise).c_str()); };
  const int threads = number(4, "2"), n = number(5, "128");
  const nn::Graph graph = nn::build_network({.name = argument(1, "resnet-v1"),
                                             .num_layers = number(2, "20"),
                                             .image = {3, 32, 32},
                                             .classes = 10,
                                             .width = number(3, "0")});
  const auto executable = backend::make_cpu_backend()->compile(graph, {.threads_per_lane = threads, .max_samples = n});
  backend::ModelState state = executable->read_state();
  nn::initialize_parameters(graph, 1, state.parameters);
  nn::initialize_statistics(graph, state.statistics);
  executable->write_state(state);

  std::vector<float> images(static_cast<std::size_t>(n * graph.input().size()));
  for (std::size_t k = 0; k < images.size(); ++k) images[k] = static_cast<float>(k * 2654435761u % 1000) / 500.0f - 1;
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) labels[static_cast<std::size_t>(i)] = i % graph.classes();
  const std::vector<std::uint32_t> ids(static_cast<std::size_t>(n));
  const backend::HostBatch batch{n, images.data(), labels.data(), ids.data()};
  const std::vector<backend::ShardRange> whole = {{0, 0, n}};
  Sink sink(backend::ContributionLayout(graph).size());
  const double pass = best_seconds([&] {
    executable->enqueue(batch, whole, {}, sink);
    executable->synchronize();
  });
  fmt::print("{}, {} parameters, {} threads: a pass of {} images {:.2f} ms\n", graph.name, graph.parameter_count,
             threads, n, pass * 1e3);
  for (const auto kind :
       {nn::OptimizerKind::sgd, nn::OptimizerKind::nag, nn::OptimizerKind::adamw, nn::OptimizerKind::muon}) {
    state.optimizer.clear();
    executable->write_state(state);
    const nn::Optimizer rule{.kind = kind};
    const double seconds = best_seconds([&] { executable->apply(sink.sum, {rule, 1e-6f}); });
    fmt::print("{:5} {:8.3f} ms, {:.2f} % of the pass", nn::optimizer_name(kind), seconds * 1e3, 100 * seconds / pass);
    if (kind == nn::OptimizerKind::muon) {
      fmt::print(", {:.1f} GFLOP/s", 2e-9 * muon_multiplications(graph, rule.newton_schulz.steps) / seconds);
    }
    fmt::print("\n");
  }
}
