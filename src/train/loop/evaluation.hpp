// Evaluation by all ranks, with a sign of life after every block.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/train/plan.hpp>
#include <dtrain/train/trainer.hpp>

#include "detection/detection_score.hpp"

namespace dtrain::train {

class GroupedExecutable;

// What is evaluated, and how; borrowed.
struct Evaluated {
  const nn::Graph& graph;
  backend::Executable& executable;
  std::span<const nn::ImageView> views;
  LogitsSink logits = {};
  GroupedExecutable* grouped = nullptr;  // what computes, where the loader's pictures are in groups
};

class Evaluation {
 public:
  // All must outlive this.
  Evaluation(const Evaluated& of, data::Loader& loader, int block, comm::Communicator& comm);
  // The blocks of this rank, without the others. `on_block` comes after each; it may throw, which ends the evaluation.
  void compute(const std::function<void()>& on_block);
  // All ranks together, about when each has computed its blocks: there is a deadline.
  EvaluationReport finish() const;

 private:
  // What one block counted, as it travels.
  struct BlockSums {
    float loss = 0, correct = 0, top_k_correct = 0, count = 0;
  };
  static BlockSums block_of(const std::vector<std::string>& by_rank, int block, int blocks);
  static comm::FloatBuffer sum_in_order(const std::vector<std::string>& by_rank, int blocks);

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const Evaluated of_;
  data::Loader& loader_;
  comm::Communicator& comm_;
  const EpochPlan plan_;
  std::optional<DetectionScore> found_;
  std::vector<BlockSums> mine_;
};

}  // namespace dtrain::train
