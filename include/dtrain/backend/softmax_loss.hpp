// What logits are worth, computed on this CPU in double; `reference` does the same by itself, as the judge. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// The three numbers of one sample.
struct SampleMetrics {
  double loss = 0;
  bool correct = false, top_k_correct = false;
};
// logits: [classes]. gradient, of the loss by them: [classes] or nullptr.
SampleMetrics softmax_loss(const float* logits, int classes, std::int32_t label, float label_smoothing, int top_k,
                           float* gradient);

// Counts as Executable::evaluate() does, without label smoothing. logits: [n, classes], labels: [n].
StepMetrics metrics_of_logits(std::span<const float> logits, int classes, const std::int32_t* labels, int top_k);

}  // namespace dtrain::backend
