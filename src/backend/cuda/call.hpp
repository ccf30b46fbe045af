// One piece of work of a GPU: a kernel with its threads, or an operation. An operation has a definition, kernels in a
// row, which compute it anywhere. A device may have something better for it: a convolution's is a library's, other
// operations' are native kernels (gpu/native), which are free to use all that a chip has.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <dtrain/backend/dtype.hpp>

#include "kernels/channels.hpp"
#include "kernels/compare.hpp"
#include "kernels/convolution.hpp"
#include "kernels/detection/work.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/input.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/layer_wise.hpp"
#include "kernels/loss.hpp"
#include "kernels/norm_pooling.hpp"
#include "kernels/one_of.hpp"
#include "kernels/orthogonalise.hpp"
#include "kernels/scale.hpp"
#include "kernels/tokens.hpp"
#include "kernels/update.hpp"
#include "kernels/whitening.hpp"

namespace dtrain::backend::cuda {

enum class Direction { forward, backward_data, backward_weights };
const char* direction_name(Direction direction);  // "forward", "data", "weights"

// What a norm with a ReLU made, for one convolution alone: y = relu(x * factor + offset), factors [2][channels of x].
struct NormedInput {
  const void* x = nullptr;  // null: something else made a
  const void* factors = nullptr;
  void* y = nullptr;   // which is `a`
  bool fused = false;  // y is not there: the convolution computes it, and may use its memory
};

// forward: a = x, b = weights, result = y; backward_data: a = dy, b = weights, result = dx; backward_weights: a = x, b
// = dy, result = dw. Overwrites the result.
struct Convolution {
  Direction direction = Direction::forward;
  ConvolutionShape shape{};
  DType dtype = DType::float32;
  const void* a = nullptr;
  const void* b = nullptr;
  void* result = nullptr;
  // backward_weights by its definition needs cut_weight_rows(shape).parts x shape.weights() floats.
  float* sums = nullptr;
  // forward, may be null: takes the sums of the result and of its square over the rows, [2][out].
  float* moments = nullptr;
  // forward and backward_weights.
  NormedInput normed{};
  // Its bits may differ between runs and ranks where that was asked for: what comes of it is only ever part of a sum
  // that all ranks get. What each rank computes for itself, as an optimizer's step, would drive them apart.
  bool any_order = false;
};

// Nothing is done: other queues can wait for the calls before it. See Recording::mark().
struct EventMarker {
  int number = 0;
  std::int64_t threads() const { return 0; }
  void operator()(std::int64_t) const {}
};

// Every kernel that is ever launched: the one list of them, first those on values of a type, then those on float alone.
template <typename T>
using KernelsOn =
    std::tuple<LoadSamples<T>, LoadBlocks<T, 1>, LoadBlocks<T, 3>, WhitenImages<T>, WhiteningSums<T>, Reorder<T>,
               Add<T>, AddBias<T>, Activate<T>, ActivateGradient<T>, Scale<T>, Drop<T>, ColumnSums<T>, ColumnMoments<T>,
               NormSums<T>, NormFromBatch<T>, NormFixed<T>, NormApply<T>, NormApply<T, true>, NormApply<T, false, true>,
               ScaleShiftRelu<T>, NormGradientSums<T>, NormGradientSums<T, true>, NormGradient<T>, NormMaxPool<T>,
               NormMaxPoolGradient<T>, MaxPool<T>, MaxPool<T, std::int32_t>, MaxPoolGradient<T>,
               MaxPoolGradient<T, std::int32_t>, AveragePool<T>, AveragePoolGradient<T>, CopyChannels<T>,
               MultiplyChannels<T>, FactorGradient<T>, LayerNormMoments<T>, LayerNormApply<T>,
               LayerNormGradientMeans<T>, LayerNormGradient<T>, LayerNormSums<T>, ScaleChannels<T>, GainSums<T>,
               PrependToken<T>, CopyTokens<T>, AddPosition<T>, SampleSums<T>, AttentionShares<T>, Attend<T>,
               AttentionScoreGradient<T>, AttentionGradient<T>, SoftmaxParts<T>, LossParts<T>, SoftmaxGradient<T>,
               AddView<T>, Convolve<T>, ConvolveBackwardData<T>, ConvolveBackwardWeights<T>, FinishWeights<T>,
               PackWeights<T>, UnpackGradients<T>, UpdateWeights<T>, MuonLoad<T>, MuonGram<T>, MuonPolynomial<T>,
               MuonAdvance<T>, MuonStep<T>, Compare<T>>;
using OtherKernels =
    std::tuple<Fill, SoftmaxLoss, Accumulate, Copy, Exchange, FoldParts, StoreSums, NormFromRunning, NormGradientFinish,
               UpdateParameters, UpdateStatistics, UpdateAverage, SquareParts, SquaresOfTensors, CutNorm, MoveLayerWise,
               MuonSquares, MuonFolds, MuonLengths, Unscale, FindNotFinite, Compare<std::uint32_t>>;

// Every operation but the convolution.
template <typename T>
using OperationsOn =
    std::tuple<NormStatistics<T>, NormGradientTotals<T>, NormGradientTotals<T, true>, ColumnTotals<T>,
               WhiteningTotals<T>, NormForward<T>, NormForward<T, true>, NormForward<T, false, true>, NormBackward<T>,
               NormBackward<T, true>, Tiled<MuonGram<T>>, Tiled<MuonPolynomial<T>>, Tiled<MuonAdvance<T>>>;

struct AllWork
    : TypesOf<std::tuple<Convolution, EventMarker, DetectionWork>, OtherKernels, KernelsOn<float>, KernelsOn<Bf16>,
              KernelsOn<Half>, OperationsOn<float>, OperationsOn<Bf16>, OperationsOn<Half>> {};
using Work = OneOf<AllWork>;

// A kernel or operation as work.
template <typename W>
Work work_of(const W& of) {
  if constexpr (IsDetectionKernel<W>) {
    return DetectionWork{of};
  } else {
    return of;
  }
}

// Work that can be called for one thread after the other; other work has a definition.
template <typename W>
concept IsKernel = requires(const W& work) {
  work(work.threads());
};

// Calls work(T{}) with the type that values of `dtype` are stored as.
template <typename Do>
void with_type(DType dtype, Do work) {
  switch (dtype) {
    case DType::float32:
      return work(float{});
    case DType::bfloat16:
      return work(Bf16{});
    case DType::float16:
      return work(Half{});
  }
}

struct Call {
  std::string name;  // of the node and what is done with it: for messages and profiles
  Work work;
};

// What defines an operation: kernels and smaller operations, in their order; empty for a kernel.
std::vector<Call> definition_of(const Call& call);

}  // namespace dtrain::backend::cuda
