// One piece of work of a GPU: a body with its threads, or a convolution, which a library computes where it can.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <dtrain/backend/dtype.hpp>

#include "bodies/convolution.hpp"
#include "bodies/elementwise.hpp"
#include "bodies/input.hpp"
#include "bodies/loss.hpp"
#include "bodies/norm.hpp"
#include "bodies/orthogonalise.hpp"
#include "bodies/pooling.hpp"
#include "bodies/update.hpp"

namespace dtrain::backend::cuda {

enum class Direction { forward, backward_data, backward_weights };

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
};

// Every body that is ever launched: the one list of them.
using Work =
    std::variant<Convolution, Fill, Accumulate, Copy, FoldParts, StoreSums, NormFromRunning, NormGradientFinish,
                 UpdateParameters, UpdateStatistics, MuonSquares, MuonLengths, MuonLoad, MuonSquareParts, MuonSquare,
                 MuonRest, MuonAdvance, MuonStep,  //
                 LoadSamples<float>, Reorder<float>, Add<float>, AddBias<float>, Activate<float>,
                 ActivateGradient<float>, Scale<float>, Drop<float>, ColumnSums<float>, NormSums<float>,
                 NormFromBatch<float>, NormApply<float>, NormGradientSums<float>, NormGradient<float>, MaxPool<float>,
                 MaxPoolGradient<float>, AveragePool<float>, AveragePoolGradient<float>, SoftmaxLoss<float>,
                 Widen<float>, Convolve<float>, ConvolveBackwardData<float>, ConvolveBackwardWeights<float>,
                 FinishWeights<float>, PackWeights<float>,
                 UnpackGradients<float>,  //
                 LoadSamples<Bf16>, Reorder<Bf16>, Add<Bf16>, AddBias<Bf16>, Activate<Bf16>, ActivateGradient<Bf16>,
                 Scale<Bf16>, Drop<Bf16>, ColumnSums<Bf16>, NormSums<Bf16>, NormFromBatch<Bf16>, NormApply<Bf16>,
                 NormGradientSums<Bf16>, NormGradient<Bf16>, MaxPool<Bf16>, MaxPoolGradient<Bf16>, AveragePool<Bf16>,
                 AveragePoolGradient<Bf16>, SoftmaxLoss<Bf16>, Widen<Bf16>, Convolve<Bf16>, ConvolveBackwardData<Bf16>,
                 ConvolveBackwardWeights<Bf16>, FinishWeights<Bf16>, PackWeights<Bf16>, UnpackGradients<Bf16>>;

struct Call {
  std::string name;  // of the node and what is done with it: for messages and profiles
  Work work;
};

// Adds the calls that compute a convolution by its definition.
void convolve_by_definition(const std::string& name, const Convolution& convolution, std::vector<Call>& calls);

}  // namespace dtrain::backend::cuda
