// What a training step asks of a GPU, counted from the program and the recordings that would run there: launches,
// bytes, arithmetic, passes over memory for each batch norm, and the time that all of it takes at given ceilings. It
// needs no GPU. Nothing is compared, nothing can fail.
// usage: dtrain_gpu_roofline [--a100|--definitions] [TB/s [TFLOP/s [NETWORK LAYERS SIZE CLASSES BATCH [DTYPE [RULE
// [own]]]]]]
// --definitions: norms keep nothing on the chip. own: dtrain's products of matrices compute all 1x1 convolutions and
// leave the sums for the norm behind them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/optimizer.hpp>

#include "convolution_fusion.hpp"
#include "executable.hpp"
#include "gpu/native/slab_choice.hpp"
#include "product.hpp"

namespace dtrain::backend::cuda {
namespace {

// Counts what a GPU would be asked for, and does nothing. Its memory is addresses alone.
class CountingDevice final : public Device {
 public:
  CountingDevice(const ChipFacts& facts, bool own_products) : chip(facts), own_products_(own_products) {}

  struct Counts {
    int launches = 0, markers = 0;
    double update_bytes = 0;  // of calls that belong to no layer
  };

  std::uint64_t free_bytes() const override { return std::uint64_t{1} << 40; }
  std::byte* allocate(std::uint64_t bytes) override {
    constexpr std::uint64_t kStep = 256;
    const std::uint64_t place = end_;
    end_ += (bytes + kStep - 1) / kStep * kStep;
    return reinterpret_cast<std::byte*>(place);
  }
  void release(std::byte*) noexcept override {}
  std::byte* allocate_host(std::uint64_t bytes) override { return allocate(bytes); }
  void release_host(std::byte*) noexcept override {}
  void upload(void*, const void*, std::size_t) override {}
  // A sample was counted, and no gradient overflowed.
  void download(void* to, const void*, std::size_t bytes) override {
    const std::size_t floats = bytes / sizeof(float);
    std::fill_n(static_cast<float*>(to), floats, floats == 1 ? 0.0f : 1.0f);
  }
  void synchronize() override {}
  DeviceMark mark() override { return {}; }
  void wait_for(DeviceMark) override {}
  std::unique_ptr<SideCopy> side_copy() override;
  std::unique_ptr<Recording> record(std::vector<Call> calls) override;
  double seconds_of(std::vector<Call>, int) override { return 0; }
  bool fuses(const Convolution& work) const override { return own_products_ && product_of(work); }
  std::uint64_t workspace_bytes() const override { return 0; }

  const ChipFacts chip;
  Counts counts;

 private:
  const bool own_products_;
  std::uint64_t end_ = std::uint64_t{1} << 20;
};

class NoCopy final : public SideCopy {
 public:
  void begin(const std::vector<CopyPiece>&) override {}
  void wait() override {}
  void join() override {}
};

// What a call reads and writes that moves weights or gradients; 0: a layer's work, whose tensors tell.
struct UpdateBytes {
  double operator()(const Fill& work) const { return 4.0 * static_cast<double>(work.total); }
  double operator()(const Unscale& work) const { return 8.0 * static_cast<double>(work.total); }
  // Value and one slot both ways, gradient, flag.
  double operator()(const UpdateParameters& work) const { return 21.0 * static_cast<double>(work.total); }
  template <typename T>
  double operator()(const UnpackGradients<T>& work) const {
    return static_cast<double>((sizeof(T) + 4) * static_cast<std::size_t>(work.number));
  }
  template <typename T>
  double operator()(const PackWeights<T>& work) const {
    return static_cast<double>((sizeof(T) + 4) * static_cast<std::size_t>(work.table.total));
  }
  double operator()(const MuonSquares& work) const { return 8.0 * kMuonPart * static_cast<double>(work.total); }
  template <typename T>
  double operator()(const MuonLoad<T>& work) const {
    return static_cast<double>((sizeof(T) + 4) * static_cast<std::size_t>(work.total));
  }
  template <typename T>
  double operator()(const MuonStep<T>& work) const {
    return static_cast<double>((sizeof(T) + 8) * static_cast<std::size_t>(work.total));
  }
  // Each factor once: the second cache holds them.
  template <typename Product>
  double operator()(const Tiled<Product>& work) const {
    return 2.0 * sizeof(typename Product::Value) * static_cast<double>(work.product.total);
  }
  template <typename Other>
  double operator()(const Other&) const {
    return 0;
  }
};

constexpr int kMomentFolds = 2;  // launches behind a product that leaves moments

// A convolution is one; so is an operation that a native kernel does.
struct Launches {
  const ChipFacts& chip;
  int operator()(const EventMarker&) const { return 0; }
  int operator()(const Convolution& work) const { return work.moments ? 1 + kMomentFolds : 1; }
  template <GoesBySlabs Norm>
  int operator()(const Norm& norm) const {
    return slabs_of(norm, chip).worth_it() ? 1 : 2;
  }
  template <typename Other>
  int operator()(const Other&) const {
    return 1;
  }
};

class Counting final : public Recording {
 public:
  Counting(const ChipFacts& chip, CountingDevice::Counts& counts, std::vector<Call> calls)
      : chip_(chip), counts_(counts), calls_(std::move(calls)) {}
  void run() override {
    for (const Call& call : calls_) {
      if (call.work.holds<EventMarker>()) ++counts_.markers;
      counts_.launches += call.work.visit(Launches{chip_});
      counts_.update_bytes += call.work.visit(UpdateBytes{});
    }
  }
  DeviceMark mark(int) const override { return {}; }
  RecordingFacts facts() const override { return {}; }

 private:
  const ChipFacts& chip_;
  CountingDevice::Counts& counts_;
  const std::vector<Call> calls_;
};

std::unique_ptr<SideCopy> CountingDevice::side_copy() { return std::make_unique<NoCopy>(); }
std::unique_ptr<Recording> CountingDevice::record(std::vector<Call> calls) {
  return std::make_unique<Counting>(chip, counts, std::move(calls));
}

struct Case {
  std::string network;
  int layers, size, classes, batch;
  DType dtype = DType::bfloat16;
  nn::OptimizerKind rule = nn::OptimizerKind::sgd;
  bool own_products = false;
};

struct Ceilings {
  double bytes = 4.3e12, flops = 790e12;  // a second
};

// One training step of a process without peers, its second one.
CountingDevice::Counts counts_of_step(const nn::Graph& graph, const Case& of, const ChipFacts& chip) {
  const auto device = std::make_shared<CountingDevice>(chip, of.own_products);
  CudaExecutable executable(device, graph, {.dtype = of.dtype, .max_samples = of.batch, .optimizer = of.rule});
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(of.batch));
  const std::vector<std::uint32_t> ids(labels.size());
  const float image = 0;
  const HostBatch batch{of.batch, &image, labels.data(), ids.data()};
  const ShardRange whole{0, 0, of.batch};
  const auto step = [&] {
    executable.enqueue(batch, {&whole, 1}, {}, OwnSum{});
    executable.set_sum(OwnSum{});
    executable.apply({.rule = {.kind = of.rule}, .learning_rate = 0.1f});
  };
  step();
  device->counts = {};
  step();
  return device->counts;
}

// Tensor cores take whole vectors of channels, in two bytes.
std::int64_t computed_channels(const Convolution& work) {
  constexpr std::int64_t kVector = 8;
  const ConvolutionShape& s = work.shape;
  return work.dtype == DType::float32 || s.groups > 1 ? s.group_in() : packs_of(s.in, kVector) * kVector;
}

// What cuDNN writes and reads to fill channels up to them: its plans for such shapes ask for room for the larger
// tensor.
double filling_bytes(const Convolution& work) {
  const ConvolutionShape& s = work.shape;
  const std::int64_t channels = computed_channels(work);
  return channels == s.group_in() ? 0 : 2.0 * 2.0 * static_cast<double>(s.inputs() / s.in * channels);
}

struct Part {
  double bytes = 0, flops = 0, seconds = 0;
  void add(double more_bytes, double more_flops, const Ceilings& ceilings) {
    bytes += more_bytes;
    flops += more_flops;
    seconds += std::max(more_bytes / ceilings.bytes, more_flops / ceilings.flops);
  }
};

// The calls of an operation, on memory that is not there.
std::vector<Call> calls_of(const Program& program, const Operation& operation, int n) {
  auto* const somewhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  auto* const floats = reinterpret_cast<float*>(somewhere);
  Binding binding{.n = n, .arena = somewhere, .offsets = &program.offsets()};
  binding.weights = binding.weight_gradients = somewhere;
  binding.parameters = binding.statistics = binding.contribution = binding.coefficients = floats;
  std::vector<Call> calls;
  operation.bind(binding, calls);
  return calls;
}

// The work as the device is asked for it, with the call behind it fused; nullopt: each is done apart.
std::optional<Convolution> with_moments(const Convolution* product, const std::vector<Call>& behind, bool own) {
  if (!product || behind.empty() || !own) return std::nullopt;
  const auto calls = fused({{"product", *product}, behind.front()},
                           [](const Convolution& work) { return product_of(work).has_value(); });
  const Convolution& asked = *calls.front().work.get_if<Convolution>();
  return asked.moments ? std::optional(asked) : std::nullopt;
}

// Statistics and what is made with them; else they are an operation of their own.
bool is_whole_norm(const Call& call) {
  return call.work.visit([]<typename W>(const W&) { return GoesBySlabs<W>; });
}

const char* part_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "convolution forward";
    case Direction::backward_data:
      return "convolution data gradient";
    case Direction::backward_weights:
      return "convolution weight gradient";
  }
  return "";
}

void print(const Case& of, const Ceilings& ceilings, const ChipFacts& chip) {
  const nn::Graph graph = nn::build_network(
      {.name = of.network, .num_layers = of.layers, .image = {3, of.size, of.size}, .classes = of.classes});
  const Model model(graph, of.dtype, 1);
  Program program = lower_training(model);
  program.plan(of.batch);
  const auto value_bytes = static_cast<double>(model.value_bytes());
  std::map<std::string, Part> parts;
  double norms = 0, norm_values = 0;
  std::optional<Convolution> before;
  for (const Operation& operation : program.operations()) {
    const std::vector<Call> calls = calls_of(program, operation, of.batch);
    const auto* const product = calls.empty() ? nullptr : calls.front().work.get_if<Convolution>();
    const auto asked = with_moments(before ? &*before : nullptr, calls, of.own_products);
    before = product ? std::optional(*product) : std::nullopt;
    if (product) {
      const ConvolutionShape& s = product->shape;
      const double flops =
          2.0 * static_cast<double>(s.outputs() * computed_channels(*product)) * s.kernel_h * s.kernel_w;
      const auto values = static_cast<double>(s.inputs() + s.outputs() + s.weights());
      parts[part_of(product->direction)].add(values * value_bytes + filling_bytes(*product), flops, ceilings);
      continue;
    }
    double bytes = 0;
    if (asked) {  // what a product leaves of the sums is written once and read once
      bytes += 2.0 * static_cast<double>(product_workspace(*asked, product_tiles(*product_of(*asked)).front()));
    }
    if (!asked || is_whole_norm(calls.front())) bytes += static_cast<double>(program.bytes_of(operation, of.batch));
    for (const Call& call : calls) {
      if (asked) continue;
      bytes += static_cast<double>(call.work.visit([&](const auto& work) { return read_again(work, chip); }));
    }
    const std::string kind = operation.kind;
    parts[kind].add(bytes, 0, ceilings);
    if (kind == "batch_norm" || kind == "activation" || kind == "add") norms += bytes;
  }
  for (const nn::Node& node : graph.nodes) {
    if (std::holds_alternative<nn::BatchNorm>(node.layer))
      norm_values += value_bytes * of.batch * static_cast<double>(node.output.size());
  }
  const CountingDevice::Counts counts = counts_of_step(graph, of, chip);
  parts["weights and gradients"].add(counts.update_bytes, 0, ceilings);

  Part all;
  fmt::print("{}-{} {}x{} {} batch {} {}\n", of.network, of.layers, of.size, of.size, dtype_name(of.dtype), of.batch,
             nn::optimizer_name(of.rule));
  constexpr double kWorthALine = 1e-6;  // seconds
  for (const auto& [name, part] : parts) {
    all.bytes += part.bytes, all.flops += part.flops, all.seconds += part.seconds;
    if (part.seconds < kWorthALine) continue;
    fmt::print("  {:28} {:8.2f} GB {:8.3f} TFLOP {:8.3f} ms\n", name, part.bytes * 1e-9, part.flops * 1e-12,
               part.seconds * 1e3);
  }
  fmt::print("  {:28} {:8.2f} GB {:8.3f} TFLOP {:8.3f} ms = {:.0f} img/s\n", "step", all.bytes * 1e-9,
             all.flops * 1e-12, all.seconds * 1e3, of.batch / all.seconds);
  fmt::print("  {} launches and {} markers a step; norms, activations and sums: {:.2f} GB, {:.2f} passes a norm\n\n",
             counts.launches, counts.markers, norms * 1e-9, norm_values > 0 ? norms / norm_values : 0.0);
}

}  // namespace
}  // namespace dtrain::backend::cuda

int main(int count, char** arguments) {
  using namespace dtrain::backend;
  using namespace dtrain::backend::cuda;
  using dtrain::nn::OptimizerKind;
  const std::string chip = count > 1 ? arguments[1] : "";
  const bool named = chip.starts_with("--");
  if (named) --count, ++arguments;
  const ChipFacts facts = !named ? kH100 : chip == "--a100" ? kA100 : ChipFacts{};
  const auto number = [&](int k, double otherwise) { return k < count ? std::atof(arguments[k]) : otherwise; };
  const Ceilings ceilings{number(1, 4.3) * 1e12, number(2, 790) * 1e12};
  std::vector<Case> cases = {
      {"resnet-v1", 50, 224, 1000, 256}, {"resnet-v1", 18, 224, 1000, 256},
      {"resnet-v1", 20, 32, 10, 512},    {"speednet", 0, 32, 10, 2000, DType::bfloat16, OptimizerKind::muon},
      {"mask-rcnn", 0, 1024, 80, 4},     {"retinanet", 0, 512, 80, 8}};
  if (count > 7) {
    const auto integer = [&](int k) { return std::atoi(arguments[k]); };
    cases = {{arguments[3], integer(4), integer(5), integer(6), integer(7)}};
    if (count > 8) cases[0].dtype = parse_dtype(arguments[8]);
    if (count > 9) cases[0].rule = dtrain::nn::parse_optimizer(arguments[9]);
    cases[0].own_products = count > 10 && std::string(arguments[10]) == "own";
  }
  for (const Case& each : cases) print(each, ceilings, facts);
}
