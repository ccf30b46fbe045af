// What moves weights: the rules of <dtrain/nn/optimizer_rule.hpp> on flat buffers, running statistics, and the copies
// of weights that convolutions read.
#pragma once

#include <cmath>

#include <dtrain/nn/optimizer_rule.hpp>

#include "pixel_blocks.hpp"

namespace dtrain::backend::cuda {

// Per parameter: what an update does with it.
enum ParameterFlag : std::uint8_t {
  kDecays = 1,
  kHeld = 2,
  kVector = 4,
  kHead = 8,
  kMatrix = 16,
  kCopied = 32  // has a copy: see PackedWeight
};

// What changes from step to step, where kernels can read it while recorded work stays as it is.
struct UpdateStep {
  nn::Optimizer rule;
  float learning_rate;
  float count;                     // samples of the step
  float correction1, correction2;  // 1 - beta^t
  float of_gradient, of_mean;      // nn::NadamShares
  float* sum;                      // see ContributionLayout
  float* slot1;
  float* slot2;  // of rules with two slots only
  // What gradients are divided by: the samples. CutNorm makes it more where the norm of the gradients is too great.
  float divisor;
  float* average;       // null: there is none
  float average_share;  // of the new values
  const float* shares;  // per parameter: nn::layer_shares(); null: all are 1
};

// One step of all parameters but those with a flag of `passed_over`. With muon, matrices leave the direction that is
// made orthogonal later in place of their gradient; with lamb and lars all leave the direction of MoveLayerWise there.
// Thread = parameter.
struct UpdateParameters {
  const UpdateStep* step;
  float* values;
  const std::uint8_t* flags;
  std::int64_t total;
  std::uint8_t passed_over = kHeld;

  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    if (!(flags[i] & passed_over)) move(i, step->sum[i]);
  }
  // By the sum of its gradients.
  DTRAIN_KERNEL void move(std::int64_t i, float sum) const {
    const UpdateStep s = *step;
    const nn::Optimizer& rule = s.rule;
    const float value = values[i], bare = cut(sum / s.divisor, rule.clip_gradient);
    const float share = s.shares ? s.shares[i] : 1.0f;
    const float decay = flags[i] & kDecays ? rule.weight_decay * share : 0.0f;
    const float factor = factor_of(rule, flags[i]) * share, gradient = factor * bare + decay * value;
    switch (rule.kind) {
      case nn::OptimizerKind::sgd: {
        const float m = rule.momentum * s.slot1[i] - s.learning_rate * gradient;
        s.slot1[i] = m;
        values[i] = value + m;
        return;
      }
      case nn::OptimizerKind::nag:
        return look_ahead(s, i, gradient, rule.momentum);
      case nn::OptimizerKind::adam: {
        const float rate = factor * s.learning_rate * sqrtf(s.correction2) / s.correction1;
        move_moments(s, i, bare + decay * value);
        values[i] = value - rate * s.slot1[i] / (sqrtf(s.slot2[i]) + rule.epsilon);
        return;
      }
      case nn::OptimizerKind::adamw: {
        move_moments(s, i, bare);
        const float mean = s.slot1[i] / s.correction1, square = s.slot2[i] / s.correction2;
        values[i] = value - s.learning_rate * (factor * (mean / (sqrtf(square) + rule.epsilon)) + decay * value);
        return;
      }
      case nn::OptimizerKind::muon: {
        if (!(flags[i] & kMatrix)) return look_ahead(s, i, gradient, rule.rest_momentum);
        const float m = rule.momentum * s.slot1[i] + bare;
        s.slot1[i] = m;
        s.sum[i] = bare + rule.momentum * m;
        return;
      }
      case nn::OptimizerKind::rmsprop: {
        const float whole = bare + decay * value;
        const float square = rule.beta2 * s.slot1[i] + (1 - rule.beta2) * whole * whole;
        s.slot1[i] = square;
        values[i] = value - factor * s.learning_rate * whole / sqrtf(square + rule.epsilon);
        return;
      }
      case nn::OptimizerKind::adagrad: {
        const float square = s.slot1[i] + bare * bare;
        s.slot1[i] = square;
        values[i] = value - s.learning_rate * (factor * bare / sqrtf(square + rule.epsilon) + decay * value);
        return;
      }
      case nn::OptimizerKind::adamax: {
        const float whole = bare + decay * value, size = (whole < 0 ? -whole : whole) + rule.epsilon;
        const float m = rule.beta1 * s.slot1[i] + (1 - rule.beta1) * whole, before = rule.beta2 * s.slot2[i];
        const float largest = before > size ? before : size;
        s.slot1[i] = m;
        s.slot2[i] = largest;
        values[i] = value - factor * s.learning_rate / s.correction1 * m / largest;
        return;
      }
      case nn::OptimizerKind::nadam: {
        const float whole = bare + decay * value;
        move_moments(s, i, whole);
        const float direction = s.of_gradient * whole + s.of_mean * s.slot1[i];
        const float root = sqrtf(s.slot2[i] / s.correction2) + rule.epsilon;
        values[i] = value - factor * s.learning_rate * direction / root;
        return;
      }
      case nn::OptimizerKind::adadelta: {
        const float whole = bare + decay * value;
        const float square = rule.beta2 * s.slot1[i] + (1 - rule.beta2) * whole * whole;
        const float change = sqrtf(s.slot2[i] + rule.epsilon) / sqrtf(square + rule.epsilon) * whole;
        s.slot1[i] = square;
        s.slot2[i] = rule.beta2 * s.slot2[i] + (1 - rule.beta2) * change * change;
        values[i] = value - factor * s.learning_rate * change;
        return;
      }
      case nn::OptimizerKind::signum: {
        const float m = rule.momentum * s.slot1[i] + (1 - rule.momentum) * (bare + decay * value);
        s.slot1[i] = m;
        values[i] = value - factor * s.learning_rate * static_cast<float>((m > 0) - (m < 0));
        return;
      }
      case nn::OptimizerKind::ftml: {
        const float whole = bare + decay * value;
        const float square = rule.beta2 * s.slot1[i] + (1 - rule.beta2) * whole * whole;
        const float rate = factor * s.learning_rate * (1 - rule.beta1) / s.correction1;
        s.slot1[i] = square;
        values[i] = value - rate * whole / (sqrtf(square / s.correction2) + rule.epsilon);
        return;
      }
      case nn::OptimizerKind::lamb: {
        move_moments(s, i, bare);
        const float mean = s.slot1[i] / s.correction1, square = s.slot2[i] / s.correction2;
        s.sum[i] = mean / (sqrtf(square) + rule.epsilon) + (flags[i] & kVector ? 0.0f : decay * value);
        return;
      }
      case nn::OptimizerKind::lars:
        s.sum[i] = bare;
        return;
    }
  }
  DTRAIN_KERNEL static float factor_of(const nn::Optimizer& rule, std::uint8_t flag) {
    if (flag & kHead) return rule.head_lr_factor;
    return flag & kVector ? rule.bias_lr_factor : 1.0f;
  }

 private:
  // NaN stays NaN.
  DTRAIN_KERNEL static float cut(float gradient, float most) {
    if (most <= 0) return gradient;
    return gradient > most ? most : gradient < -most ? -most : gradient;
  }
  DTRAIN_KERNEL void look_ahead(const UpdateStep& s, std::int64_t i, float gradient, float momentum) const {
    const float m = momentum * s.slot1[i] + gradient;
    s.slot1[i] = m;
    values[i] -= s.learning_rate * (gradient + momentum * m);
  }
  DTRAIN_KERNEL static void move_moments(const UpdateStep& s, std::int64_t i, float gradient) {
    s.slot1[i] = s.rule.beta1 * s.slot1[i] + (1 - s.rule.beta1) * gradient;
    s.slot2[i] = s.rule.beta2 * s.slot2[i] + (1 - s.rule.beta2) * gradient * gradient;
  }
};

// Running statistics take the weighted mean of the batch's. Thread = statistic.
struct UpdateStatistics {
  const UpdateStep* step;
  std::int64_t first;  // of the statistics in the sum
  float* values;
  const float* momenta;  // per statistic
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    values[i] = momenta[i] * values[i] + (1 - momenta[i]) * (step->sum[first + i] / step->count);
  }
};

// The average follows what an update left. Thread = element of it.
struct UpdateAverage {
  const UpdateStep* step;
  const float* parameters;
  const float* statistics;
  std::int64_t parameter_count, total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const float value = i < parameter_count ? parameters[i] : statistics[i - parameter_count];
    float& average = step->average[i];
    average += step->average_share * (value - average);
  }
};

// A weight [out, in, kernel_h, kernel_w] of the flat buffer, and its copy [out, kernel_h, kernel_w, in]; or its copy
// for blocks of pixels (PixelBlocks), [out, blocks of rows, blocks of columns, block_channels], with zeros where a
// block stands out of the kernel, and in channels that no pixel has.
struct PackedWeight {
  std::int64_t first;      // in the copies
  std::int64_t flat;       // in the flat buffer
  std::int64_t size;       // of the copy
  std::int64_t flat_size;  // in the flat buffer
  std::int32_t in, kernel_h, kernel_w;
  std::int32_t block_channels;  // 0: not in blocks
  bool frozen;                  // has no gradient
  // -1: a zero, which is not there. In 32 bits, which a GPU divides several times as fast: no weight has more elements.
  DTRAIN_KERNEL std::int64_t flat_of(std::int64_t copied) const {
    const bool blocks = block_channels > 0;
    const auto channels = static_cast<std::uint32_t>(blocks ? block_channels : in),
               width = static_cast<std::uint32_t>(blocks ? PixelBlocks::blocks_of(kernel_w) : kernel_w),
               height = static_cast<std::uint32_t>(blocks ? PixelBlocks::blocks_of(kernel_h) : kernel_h);
    const auto e = static_cast<std::uint32_t>(copied - first);
    const std::uint32_t place = e / channels, k = e - place * channels;
    const std::uint32_t line = place / width, x = place - line * width;
    const std::uint32_t to = line / height, y = line - to * height;
    return blocks ? flat_in_block(to, y, x, k) : flat_at(to, y, x, k);
  }

 private:
  DTRAIN_KERNEL std::int64_t flat_at(std::uint32_t to, std::uint32_t y, std::uint32_t x, std::uint32_t k) const {
    const auto channels = static_cast<std::uint32_t>(in), width = static_cast<std::uint32_t>(kernel_w),
               height = static_cast<std::uint32_t>(kernel_h);
    return flat + (((to * channels + k) * height + y) * width + x);
  }
  DTRAIN_KERNEL std::int64_t flat_in_block(std::uint32_t to, std::uint32_t block_y, std::uint32_t block_x,
                                           std::uint32_t channel) const {
    constexpr auto kSide = static_cast<std::uint32_t>(PixelBlocks::side);
    const std::uint32_t pixel = channel / static_cast<std::uint32_t>(in);
    const std::uint32_t k = channel - pixel * static_cast<std::uint32_t>(in);
    const std::uint32_t y = kSide * block_y + pixel / kSide, x = kSide * block_x + pixel % kSide;
    const bool there =
        pixel < kSide * kSide && y < static_cast<std::uint32_t>(kernel_h) && x < static_cast<std::uint32_t>(kernel_w);
    return there ? flat_at(to, y, x, k) : -1;
  }
};

// Ascending by `first`, which is a multiple of kWeightStep; between two weights there may be a gap.
constexpr std::int64_t kWeightStep = 128;
struct PackedWeights {
  const PackedWeight* weights;
  std::int32_t number;
  std::int64_t total;  // elements of the copies, gaps included
  // The weight that element i of the copies belongs to; null in a gap.
  DTRAIN_KERNEL const PackedWeight* find(std::int64_t i) const {
    std::int32_t low = 0, high = number;
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (weights[middle].first <= i ? low : high) = middle;
    }
    const PackedWeight* const found = weights + low;
    return number > 0 && i >= found->first && i - found->first < found->size ? found : nullptr;
  }
};

// Where a thread's elements of the copies, all of one weight, are in the flat buffer: found once for all of them.
template <typename T>
struct WeightPlaces {
  std::int64_t first;
  int size;  // 0 in a gap
  const PackedWeight* weight;
  std::int64_t flat[Pack<T>::size];  // see PackedWeight::flat_of
  DTRAIN_KERNEL bool is_there(int k) const { return k < size && flat[k] >= 0; }
  DTRAIN_KERNEL WeightPlaces(const PackedWeights& table, std::int64_t first_of)
      : first(first_of), size(0), weight(table.find(first_of)) {
    if (!weight) return;
    const std::int64_t rest = weight->first + weight->size - first;
    size = rest < Pack<T>::size ? static_cast<int>(rest) : Pack<T>::size;
    // Whole groups of input channels stay in one place of the kernel.
    const bool together = weight->in % Pack<T>::size == 0 && weight->block_channels == 0;
    const std::int64_t start = weight->flat_of(first), step = std::int64_t{weight->kernel_h} * weight->kernel_w;
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k)
      flat[k] = together || k >= size ? start + k * step : weight->flat_of(first + k);
  }
};

// Copies of all weights, from the flat buffer. Thread = Pack of the copies.
template <typename T>
struct PackWeights {
  PackedWeights table;
  const float* parameters;
  T* copies;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(table.total, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const WeightPlaces<T> at(table, i * Pack<T>::size);
    Pack<T> pack{};
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (at.is_there(k)) narrow(parameters[at.flat[k]], pack.values[k]);
    }
    if (at.size > 0) store_pack(pack, copies, at.first, at.first + at.size);
  }
};

// And the way back, for the gradients of those that are not frozen, from element `first` of the copies on, a multiple
// of kWeightStep. Thread = Pack of the copies.
template <typename T>
struct UnpackGradients {
  PackedWeights table;
  const T* copies;
  float* gradients;
  std::int64_t first, number;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(number, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t thread) const {
    const WeightPlaces<T> at(table, first + thread * Pack<T>::size);
    if (at.size == 0 || at.weight->frozen) return;
    const Pack<T> pack = load_pack(copies, at.first, at.first + at.size);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (at.is_there(k)) gradients[at.flat[k]] = widen(pack.values[k]);
    }
  }
};

// One step of the weights by the gradients of their copies, which leaves new copies: for a rank whose sum is one
// shard's. Not for muon. Thread = Pack of the copies.
template <typename T>
struct UpdateWeights {
  UpdateParameters update;
  PackedWeights table;
  const T* gradients;
  T* copies;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(table.total, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const WeightPlaces<T> at(table, i * Pack<T>::size);
    if (at.size == 0 || at.weight->frozen) return;
    Pack<T> pack = load_pack(gradients, at.first, at.first + at.size);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (!at.is_there(k)) {
        pack.values[k] = T{};
        continue;
      }
      update.move(at.flat[k], widen(pack.values[k]));
      narrow(update.values[at.flat[k]], pack.values[k]);
    }
    store_pack(pack, copies, at.first, at.first + at.size);
  }
};

}  // namespace dtrain::backend::cuda
