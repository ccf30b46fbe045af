// Compiles what the coming steps need, so that a newcomer is as fast in its first step as the others.
#pragma once

#include <dtrain/train/plan.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// Computes one shard of every size that an epoch has, and an evaluation block of so many samples unless that is 0, on
// images of zeros; nothing is kept.
void warm_up(const nn::Graph& graph, backend::Executable& executable, const EpochPlan& plan, int evaluation_block);

}  // namespace dtrain::train
