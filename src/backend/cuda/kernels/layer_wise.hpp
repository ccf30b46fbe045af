// What an update does with whole tensors: lengths in a fixed order, the norm of all gradients, and the steps of lamb
// and lars, which depend on their tensor's lengths.
#pragma once

#include <cmath>

#include "sums.hpp"
#include "update.hpp"

namespace dtrain::backend::cuda {

// A tensor that learns. Its squares are added up in parts, of which part p has every parts-th element from p on.
struct UpdatedTensor {
  std::int64_t flat = 0, size = 0;  // in the flat buffers
  std::int32_t first_part = 0, parts = 0;
};

// Ascending by place.
struct UpdatedTensors {
  const UpdatedTensor* tensors;
  std::int32_t number;
  // The last one whose Place is not above i.
  template <auto Place>
  DTRAIN_KERNEL std::int32_t find(std::int64_t i) const {
    std::int32_t low = 0, high = number;
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (tensors[middle].*Place <= i ? low : high) = middle;
    }
    return low;
  }
};

struct TensorSquares {
  float sum, weight;  // of what stands in step->sum, and of the weights
};

// Thread = part.
struct SquareParts {
  UpdatedTensors table;
  const UpdateStep* step;
  const float* weights;
  TensorSquares* parts;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const UpdatedTensor& tensor = table.tensors[table.find<&UpdatedTensor::first_part>(i)];
    const float* const values = step->sum;
    double sum = 0, weight = 0;
    constexpr int kTogether = 8;
    for (std::int64_t first = i - tensor.first_part; first < tensor.size;
         first += std::int64_t{kTogether} * tensor.parts) {
      float s[kTogether], w[kTogether];
      DTRAIN_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        const std::int64_t at = first + std::int64_t{k} * tensor.parts;
        s[k] = at < tensor.size ? values[tensor.flat + at] : 0.0f;
        w[k] = at < tensor.size ? weights[tensor.flat + at] : 0.0f;
      }
      DTRAIN_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        sum += static_cast<double>(s[k]) * s[k];
        weight += static_cast<double>(w[k]) * w[k];
      }
    }
    parts[i] = {static_cast<float>(sum), static_cast<float>(weight)};
  }
};

// Thread = tensor.
struct SquaresOfTensors {
  UpdatedTensors table;
  const TensorSquares* parts;
  TensorSquares* squares;
  DTRAIN_KERNEL std::int64_t threads() const { return table.number; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const UpdatedTensor& tensor = table.tensors[i];
    const TensorSquares* const of = parts + tensor.first_part;
    squares[i] = {static_cast<float>(sum_in_order(tensor.parts, [&](std::int32_t k) { return of[k].sum; })),
                  static_cast<float>(sum_in_order(tensor.parts, [&](std::int32_t k) { return of[k].weight; }))};
  }
};

// Makes step->divisor what the rule's clip_norm asks for. One thread.
struct CutNorm {
  const TensorSquares* squares;
  std::int32_t number;
  UpdateStep* step;
  DTRAIN_KERNEL std::int64_t threads() const { return 1; }
  DTRAIN_KERNEL void operator()(std::int64_t) const {
    const double total = sum_in_order(number, [&](std::int32_t k) { return squares[k].sum; });
    const float length = static_cast<float>(sqrt(total)) / step->count + nn::Optimizer::kNormEpsilon;
    const float most = step->rule.clip_norm;
    step->divisor = length > most ? step->count * (length / most) : step->count;
  }
};

// The steps of lamb and lars along the directions in step->sum. Thread = parameter.
struct MoveLayerWise {
  UpdatedTensors table;
  const UpdateStep* step;
  const TensorSquares* squares;
  const std::uint8_t* flags;
  float* values;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    if (flags[i] & kHeld) return;
    const UpdateStep s = *step;
    const nn::Optimizer& rule = s.rule;
    const TensorSquares of = squares[table.find<&UpdatedTensor::flat>(i)];
    const float decay = flags[i] & kDecays ? rule.weight_decay : 0.0f;
    const float factor = UpdateParameters::factor_of(rule, flags[i]);
    const float rate = s.learning_rate * ratio(rule, !(flags[i] & kVector), decay, sqrtf(of.weight), sqrtf(of.sum));
    const float value = values[i], direction = s.sum[i];
    if (rule.kind == nn::OptimizerKind::lamb) {
      values[i] = value - factor * rate * direction;
      return;
    }
    const float m = rule.momentum * s.slot1[i] - rate * (factor * direction + decay * value);
    s.slot1[i] = m;
    values[i] = value + m;
  }

 private:
  DTRAIN_KERNEL static float ratio(const nn::Optimizer& rule, bool is_weight, float decay, float weight,
                                   float direction) {
    if (!is_weight || !(weight > 0) || !(direction > 0)) return 1;
    if (rule.kind == nn::OptimizerKind::lamb) return weight / direction;
    return nn::Optimizer::kTrust * weight / (direction + decay * weight + rule.epsilon);
  }
};

}  // namespace dtrain::backend::cuda
