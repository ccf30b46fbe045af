#include "call.hpp"

namespace dtrain::backend::cuda {
namespace {

using Calls = std::vector<Call>;

template <typename T>
void add(const std::string& name, const Convolution& c, Calls& calls) {
  const auto* a = static_cast<const T*>(c.a);
  const auto* b = static_cast<const T*>(c.b);
  auto* result = static_cast<T*>(c.result);
  if (c.normed.fused) {
    const ConvolutionShape& s = c.shape;
    calls.push_back({name, ScaleShiftRelu<T>{static_cast<const T*>(c.normed.x), static_cast<const T*>(c.normed.factors),
                                             static_cast<T*>(c.normed.y), few_rows(s.inputs() / s.in), s.in}});
  }
  switch (c.direction) {
    case Direction::forward:
      calls.push_back({name, Convolve<T>{a, b, result, c.shape}});
      if (c.moments) {
        calls.push_back({name, ColumnMoments<T>{result, c.moments, c.shape.outputs() / c.shape.out, c.shape.out}});
      }
      return;
    case Direction::backward_data:
      calls.push_back({name, ConvolveBackwardData<T>{a, b, result, c.shape}});
      return;
    case Direction::backward_weights: {
      const RowParts cut = cut_weight_rows(c.shape);
      calls.push_back({name, ConvolveBackwardWeights<T>{a, b, c.sums, c.shape, cut}});
      calls.push_back({name, FinishWeights<T>{c.sums, result, c.shape.weights(), cut.parts}});
      return;
    }
  }
}

struct Definition {
  const std::string& name;
  Calls calls = {};

  void operator()(const Convolution& convolution) {
    with_type(convolution.dtype, [&]<typename T>(T) { add<T>(name, convolution, calls); });
  }
  template <typename Sums, typename Finish>
  void operator()(const FoldedSums<Sums, Finish>& work) {
    calls = {{name, work.sums}, {name, work.fold}, {name, work.finish}};
  }
  template <typename Product>
  void operator()(const Tiled<Product>& work) {
    calls = {{name, work.product}};
  }
  template <typename T, bool Gelu, bool NormsResidual>
  void operator()(const NormForward<T, Gelu, NormsResidual>& norm) {
    calls = {{name, norm.statistics}, {name, norm.apply}};
  }
  template <typename T, bool Gelu>
  void operator()(const NormBackward<T, Gelu>& norm) {
    calls = {{name, norm.totals}, {name, norm.gradient}};
  }
  template <IsKernel Kernel>
  void operator()(const Kernel&) {}
};

}  // namespace

const char* direction_name(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward_data:
      return "data";
    case Direction::backward_weights:
      break;
  }
  return "weights";
}

Calls definition_of(const Call& call) {
  Definition definition{call.name};
  call.work.visit(definition);
  return std::move(definition.calls);
}

}  // namespace dtrain::backend::cuda
