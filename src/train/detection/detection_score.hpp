// What a detector found in the pictures of an evaluation, by all ranks, as average precision.
#pragma once

#include <span>
#include <string>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// One thread.
class DetectionScore {
 public:
  explicit DetectionScore(const nn::Graph& graph) : graph_(graph) {}
  // `batch` has objects; `results` is what Executable::evaluate() gave for it.
  void add(const backend::HostBatch& batch, std::span<const float> results);
  // All ranks together: fills boxes, accuracy and top_k_accuracy.
  void finish(comm::Communicator& comm, EvaluationReport& report) const;

 private:
  const nn::Graph& graph_;
  std::string pictures_;  // as they travel
};

}  // namespace dtrain::train
