// Evaluation by all ranks, with a sign of life after every block.
#pragma once

#include <functional>
#include <span>

#include <dtrain/train/trainer.hpp>

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

EvaluationReport evaluate_blocks(const Evaluated& of, data::Loader& loader, int block, comm::Communicator& comm,
                                 const std::function<void()>& on_block);

}  // namespace dtrain::train
