// Training steps of a CIFAR ResNet on the CPU backend without a loader: images a second by the wall clock and by
// processor time, the limit (the step's bare convolution primitives) and where the time goes. Nothing is compared,
// nothing can fail. usage: dtrain_step_bench [WIDTH [DTYPE [SHARDS [THREADS [BATCH [NETWORK [LAYERS]]]]]]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>

namespace {

using namespace dtrain;

// Adds each shard's contribution as it comes, on the thread that computed it.
class Sink final : public backend::ContributionSink {
 public:
  Sink(int shards, std::int64_t size)
      : buffers_(static_cast<std::size_t>(shards), std::vector<float>(static_cast<std::size_t>(size))) {}
  std::span<float> buffer(const backend::ShardRange& shard) override {
    return buffers_[static_cast<std::size_t>(shard.index)];
  }
  void ready(const backend::ShardRange& shard, std::int64_t, std::int64_t, bool last) override {
    if (!last) return;
    const std::scoped_lock lock(mutex_);
    if (added_++ == 0) return void(sum_ = buffers_[static_cast<std::size_t>(shard.index)]);
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += buffers_[static_cast<std::size_t>(shard.index)][i];
  }
  std::span<const float> take_sum() {
    added_ = 0;
    return sum_;
  }

 private:
  std::vector<std::vector<float>> buffers_;
  std::mutex mutex_;  // guards those below
  std::vector<float> sum_;
  int added_ = 0;
};

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print_table(const backend::Profile& profile, double scale) {
  std::map<std::string, std::pair<double, double>> kinds;
  for (const backend::OperationTime& row : profile.of_shard) {
    const double seconds = row.seconds * scale, bare = row.bare_seconds * scale;
    fmt::print("{:45} {:26} {:38} {:9.1f} us  bare {:9.1f}\n", row.name, row.kind, row.shape, seconds * 1e6,
               bare * 1e6);
    auto& kind = kinds[row.kind];
    kind.first += seconds;
    kind.second += bare;
  }
  for (const auto& [kind, times] : kinds) {
    fmt::print("{:30} {:8.3f} ms  bare {:8.3f} ms\n", kind, times.first * 1e3, times.second * 1e3);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int k, const char* otherwise) { return std::string(k < count ? arguments[k] : otherwise); };
  const int width = std::atoi(argument(1, "16").c_str()), shards = std::atoi(argument(3, "8").c_str());
  const int threads = std::atoi(argument(4, "2").c_str()), n = std::atoi(argument(5, "128").c_str());
  const int layers = std::atoi(argument(7, "20").c_str());
  const nn::Graph graph = nn::build_network(
      {.name = argument(6, "resnet-v1"), .num_layers = layers, .image = {3, 32, 32}, .classes = 10, .width = width});
  backend::CompileOptions options;
  options.dtype = backend::parse_dtype(argument(2, "float32"));
  options.lanes = shards > 1 ? threads : 1;
  options.threads_per_lane = shards > 1 ? 1 : threads;
  options.max_samples = (n + shards - 1) / shards;
  const auto backend = backend::make_cpu_backend();
  const auto executable = backend->compile(graph, options);
  backend::ModelState state = executable->read_state();
  nn::initialize_parameters(graph, 1, state.parameters);
  nn::initialize_statistics(graph, state.statistics);
  executable->write_state(state);

  std::vector<float> images(static_cast<std::size_t>(n * graph.input().size()));
  for (std::size_t k = 0; k < images.size(); ++k) images[k] = static_cast<float>(k * 2654435761u % 1000) / 500.0f - 1;
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) labels[static_cast<std::size_t>(i)] = i % 10;
  const backend::HostBatch batch{n, images.data(), labels.data(), ids.data()};
  std::vector<backend::ShardRange> ranges;
  for (int k = 0; k < shards; ++k) ranges.push_back({k, n * k / shards, n * (k + 1) / shards - n * k / shards});
  Sink sink(shards, backend::ContributionLayout(graph).size());
  const auto step = [&] {
    executable->enqueue(batch, ranges, {}, sink);
    executable->synchronize();
    executable->apply(sink.take_sum(), {{}, 0.01f});
  };
  const double before = process_seconds();
  step();
  const double first_step = process_seconds() - before;
  for (int k = 0; k < 2; ++k) step();
  double best_wall = 1e9, best_processor = 1e9;
  for (const double end = wall_seconds() + 2; wall_seconds() < end;) {
    const double wall = wall_seconds(), processor = process_seconds();
    step();
    best_wall = std::min(best_wall, wall_seconds() - wall);
    best_processor = std::min(best_processor, process_seconds() - processor);
  }
  constexpr int kRepeats = 5;
  const backend::Profile profile =
      executable->profile({ranges.back().count, images.data(), labels.data(), ids.data()}, kRepeats);
  const double shards_per_lane = static_cast<double>(shards) / options.lanes;
  if (count > 8) print_table(profile, shards_per_lane);
  double limit = 0, all = 0;
  for (const backend::OperationTime& row : profile.of_shard) {
    all += row.seconds * shards_per_lane;
    if (row.kind == "convolution") limit += row.bare_seconds * shards_per_lane;
  }
  fmt::print("first step, with its primitives made: {:.0f} ms of processor time\n", first_step * 1e3);
  fmt::print("{}, {}, width {}, {}, V={}, {} threads, batch {}\n", backend->description(), graph.name, width,
             argument(2, "float32"), shards, threads, n);
  fmt::print("step {:.2f} ms = {:.0f} img/s; by processor time {:.2f} ms = {:.0f} img/s; in operations {:.2f} ms\n",
             best_wall * 1e3, n / best_wall, best_processor / threads * 1e3, n * threads / best_processor, all * 1e3);
  fmt::print(
      "limit {:.2f} ms = {:.0f} img/s; reached {:.1f} % by the wall, {:.1f} % by processor time; planned {:.1f} MiB\n",
      limit * 1e3, n / limit, 100 * limit / best_wall, 100 * limit / (best_processor / threads),
      static_cast<double>(executable->planned_bytes()) / 1048576);
}
