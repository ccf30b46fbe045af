// What logits are worth, computed on this CPU in double; `reference` does the same by itself, as the judge. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/backend/backend.hpp>

namespace dtrain::backend {

// What a sample shows: one class, or two by their shares.
struct Target {
  std::int32_t label = 0, partner = 0;
  float share = 1;  // of the label
};
Target target_of(const HostBatch& batch, int sample);

// The three numbers of one sample; those of two classes count by their shares.
struct SampleMetrics {
  double loss = 0, correct = 0, top_k_correct = 0;
};
// logits: [classes]. gradient, of the loss by them: [classes] or nullptr.
SampleMetrics softmax_loss(const float* logits, int classes, const Target& target, const nn::SoftmaxLoss& loss,
                           int top_k, float* gradient);

// Counts as Executable::evaluate() does, by plain cross-entropy. logits: [n, classes], labels: [n].
StepMetrics metrics_of_logits(std::span<const float> logits, int classes, const std::int32_t* labels, int top_k);

}  // namespace dtrain::backend
