#include "dense_product.hpp"

#include <algorithm>
#include <vector>

#include "../kernels/fused_kernels.hpp"
#include "../thread_clock.hpp"
#include "dense_gradient.hpp"
#include "dense_rows.hpp"

namespace dtrain::backend::cpu {
namespace {

// What both directions share: the tensors on both sides of the weights, and scratch for float32 rows of them.
class DenseOp : public Op {
 public:
  DenseOp(const ProductLayer& layer, TensorId in, TensorId out)
      : layer_(layer), in_rows_(layer.shape().in), out_rows_({layer.shape().out.c, 1, 1}), in_(in), out_(out) {
    kind = "dense";
  }

  void prepare(int count, int) final { most_ = std::max(most_, count); }
  std::size_t scratchpad_bytes() const final {
    return sizeof(float) *
           static_cast<std::size_t>(dense_scratch(most_) + in_rows_.scratch(most_) + out_rows_.scratch(most_));
  }
  std::size_t workspace_bytes() const final { return 0; }
  std::size_t weight_bytes() const final { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const final { return weight_bytes(); }
  std::string shape_name(int count) const final { return layer_.shape_name(count); }
  void begin(Context&) final {}
  void finish(Context&) final {}
  bool meets() const final { return false; }
  void meet(std::span<Context>) final {}

  void run(Context& c) final {
    const float* const bias = layer_.bias_offset() >= 0 ? c.parameters + layer_.bias_offset() : nullptr;
    multiply(*c.worker, weights_at(c.parameters + layer_.weight_offset()), bias,
             {c.count, c.data(in_), type_of(c, in_), c.data(out_), type_of(c, out_)});
  }
  double bare_seconds(Worker& worker, int count, int repeats) final {
    const auto halves = [](std::int64_t size) { return std::vector<float>(static_cast<std::size_t>(size), 0.5f); };
    const Product& p = layer_.shape();
    std::vector<float> in = halves(count * p.in.size()), out = halves(count * p.out.size());
    const std::vector<float> weights = halves(p.in.size() * p.out.size() + p.out.size());
    return median_seconds(repeats, [&] {
      multiply(worker, weights_at(weights.data()), p.bias ? weights.data() : nullptr,
               {count, in.data(), DType::float32, out.data(), DType::float32});
    });
  }

 protected:
  // The layer's source or its gradient, and the result or its gradient.
  struct Samples {
    int count = 0;
    void* in = nullptr;
    DType in_type = DType::float32;
    void* out = nullptr;
    DType out_type = DType::float32;
  };
  virtual void multiply(Worker& worker, const DenseWeights& weights, const float* bias, const Samples& samples) = 0;

  // The scratchpad: for the kernels, then for rows of the source, then for those of the result.
  static float* sums(Worker& worker) { return worker.scratchpad.as<float>(); }
  static float* sources(Worker& worker, int count) { return sums(worker) + dense_scratch(count); }
  float* results(Worker& worker, int count) const { return sources(worker, count) + in_rows_.scratch(count); }

  const ProductLayer& layer_;
  const DenseRows in_rows_, out_rows_;
  const DenseKernels& kernels_ = *fused_kernels().dense;

 private:
  static DType type_of(const Context& c, TensorId id) { return c.tensors[static_cast<std::size_t>(id)].dtype; }

  DenseWeights weights_at(const float* weights) const {
    return {layer_.shape().out.c, in_rows_.size(), weights, layer_.shape().widened};
  }

  const TensorId in_, out_;
  int most_ = 0;  // samples of a chunk
};

class DenseForward final : public DenseOp {
 public:
  DenseForward(const ProductLayer& layer, TensorId source, TensorId result) : DenseOp(layer, source, result) {
    reads = {source};
    writes = {result};
  }

 private:
  void multiply(Worker& worker, const DenseWeights& weights, const float* bias, const Samples& s) override {
    const float* const source = in_rows_.read(s.count, s.in, s.in_type, sources(worker, s.count));
    out_rows_.write(s.count, s.out, s.out_type, results(worker, s.count),
                    [&](float* result) { kernels_.forward(weights, s.count, source, bias, result); });
  }
};

class DenseBackwardData final : public DenseOp {
 public:
  DenseBackwardData(const ProductLayer& layer, TensorId gradient, TensorId source_gradient)
      : DenseOp(layer, source_gradient, gradient) {
    reads = {gradient};
    writes = {source_gradient};
  }

 private:
  void multiply(Worker& worker, const DenseWeights& weights, const float*, const Samples& s) override {
    const float* const gradient = out_rows_.read(s.count, s.out, s.out_type, results(worker, s.count));
    in_rows_.write(s.count, s.in, s.in_type, sources(worker, s.count),
                   [&](float* rows) { kernels_.backward(weights, s.count, gradient, rows, sums(worker)); });
  }
};

}  // namespace

bool has_dense_product(const Product& p, const CpuModel& cpu) {
  return has_dense_gradient(p, cpu) && p.arithmetic() == DType::float32;
}

std::unique_ptr<Op> make_dense_forward(const ProductLayer& layer, TensorId source, TensorId result) {
  return std::make_unique<DenseForward>(layer, source, result);
}
std::unique_ptr<Op> make_dense_backward_data(const ProductLayer& layer, TensorId gradient, TensorId source_gradient) {
  return std::make_unique<DenseBackwardData>(layer, gradient, source_gradient);
}

}  // namespace dtrain::backend::cpu
