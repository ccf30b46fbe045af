#include "dense_gradient.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "../kernels/fused_kernels.hpp"
#include "../thread_clock.hpp"
#include "dense_factors.hpp"
#include "dense_rows.hpp"

namespace dtrain::backend::cpu {
namespace {

// So many rows of the gradient are written side by side: a panel of the source is read once for all of them.
constexpr int kRowsWritten = 24;
// Elements of a gradient that no second-level cache holds.
constexpr std::int64_t kLargeGradient = std::int64_t{1} << 20;

class DenseGradient final : public Op {
 public:
  DenseGradient(const ProductLayer& layer, TensorId source, TensorId gradient)
      : layer_(layer),
        source_rows_(layer.shape().in),
        rows_(layer.shape().out.c),
        columns_(source_rows_.size()),
        source_(source),
        gradient_(gradient) {
    kind = "dense";
    reads = {source, gradient};
    gradients = {{layer.weight_offset(), std::int64_t{rows_} * columns_}};
    can_defer = true;
  }

  void prepare(int count, int) override { most_ = std::max(most_, count); }
  std::size_t scratchpad_bytes() const override {
    return sizeof(float) * static_cast<std::size_t>(source_rows_.scratch(most_) + std::int64_t{most_} * rows_);
  }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const override { return weight_bytes(); }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context& c) override {
    if (c.defers) c.deferred.push_back(std::make_shared<DenseFactors>(layer_.weight_offset(), rows_, columns_));
  }
  void run(Context& c) override {
    if (c.defers) return factors_of(c).add(chunk_of(c));
    add_samples(*c.worker, c.count, c.data(source_), type_of(c, source_), c.data(gradient_), type_of(c, gradient_),
                !c.is_first_chunk(), c.contribution + layer_.weight_offset());
  }
  void finish(Context& c) override {
    if (c.chunks == 0 && !c.defers) std::memset(c.contribution + layer_.weight_offset(), 0, weight_bytes());
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    const auto halves = [](std::int64_t size) { return std::vector<float>(static_cast<std::size_t>(size), 0.5f); };
    const std::vector<float> source = halves(std::int64_t{count} * columns_);
    const std::vector<float> gradient = halves(std::int64_t{count} * rows_);
    std::vector<float> sums = halves(std::int64_t{rows_} * columns_);
    return median_seconds(repeats, [&] {
      add_samples(worker, count, source.data(), DType::float32, gradient.data(), DType::float32, false, sums.data());
    });
  }

 private:
  static DType type_of(const Context& c, TensorId id) { return c.tensors[static_cast<std::size_t>(id)].dtype; }

  DenseFactors& factors_of(const Context& c) const {
    const auto first = [](const auto& factors) { return factors->part().first; };
    return **std::ranges::find(c.deferred, layer_.weight_offset(), first);
  }

  DenseFactors::Chunk chunk_of(const Context& c) const {
    DenseFactors::Chunk chunk;
    chunk.count = c.count;
    chunk.source = numbers(c.count, columns_);
    chunk.gradient = numbers(c.count, rows_);
    auto* const floats = c.worker->scratchpad.as<float>();
    const float* const source = source_rows_.read(c.count, c.data(source_), type_of(c, source_), floats);
    std::copy_n(source, std::int64_t{c.count} * columns_, chunk.source.get());
    kernels_for(select_kernels(), type_of(c, gradient_))
        .to_float(c.data(gradient_), chunk.gradient.get(), std::int64_t{c.count} * rows_);
    return chunk;
  }

  static std::unique_ptr<float[]> numbers(int samples, int each) {
    return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(samples) * static_cast<std::size_t>(each));
  }

  void add_samples(Worker& worker, int count, const void* x, DType x_type, const void* g, DType g_type, bool adds,
                   float* sums) const {
    auto* const floats = worker.scratchpad.as<float>();
    float* const left = floats + source_rows_.scratch(count);
    const float* const source = source_rows_.read(count, x, x_type, floats);
    kernels_for(select_kernels(), g_type).to_float(g, left, std::int64_t{count} * rows_);
    for (int row = 0; row < rows_; row += kRowsWritten) {
      kernels_.product({.rows = std::min(kRowsWritten, rows_ - row),
                        .inner = count,
                        .columns = columns_,
                        .left = left + row,
                        .left_row = 1,
                        .left_inner = rows_,
                        .right = source,
                        .right_inner = columns_,
                        .right_panel = kernels_.widest_panel,
                        .out = sums + std::int64_t{row} * columns_,
                        .out_row = columns_,
                        .adds = adds});
    }
  }

  const FusedKernels& kernels_ = fused_kernels();
  const ProductLayer& layer_;
  const DenseRows source_rows_;
  const int rows_, columns_;
  const TensorId source_, gradient_;
  int most_ = 0;  // samples of a chunk
};

}  // namespace

bool has_dense_gradient(const Product& p, const CpuModel& cpu) {
  if (!p.dense || !cpu.has_fused_kernels() || p.in.size() % kWidestPanel != 0) return false;
  return p.out.c * p.in.size() >= kLargeGradient;
}

std::unique_ptr<Op> make_dense_gradient(const ProductLayer& layer, TensorId source, TensorId gradient) {
  return std::make_unique<DenseGradient>(layer, source, gradient);
}

}  // namespace dtrain::backend::cpu
