// Compiles what the coming steps need, so that a newcomer is as fast in its first step as the others, and finds out
// whether this machine computes the bits that others compute.
#pragma once

#include <string>

#include <dtrain/train/plan.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// Computes one shard of every size that an epoch has, and an evaluation block of so many samples unless that is 0, of
// synthetic samples with synthetic weights. Returns the hash of what the shards contribute: equal wherever the same
// bits are computed. `contribution`: the floats of one. The executable's state means nothing afterwards.
std::string warm_up(const nn::Graph& graph, backend::Executable& executable, const EpochPlan& plan,
                    int evaluation_block, std::int64_t contribution);

}  // namespace dtrain::train
