// Evaluation by all ranks, with a sign of life after every block.
#pragma once

#include <functional>

#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

EvaluationReport evaluate_blocks(backend::Executable& executable, data::Loader& loader, int block,
                                 comm::Communicator& comm, const std::function<void()>& on_block);

}  // namespace dtrain::train
