// The persistent state of an executable and the one phase that changes it.
#pragma once

#include <functional>

#include <dtrain/backend/backend.hpp>

#include "kernels.hpp"

namespace dtrain::backend::cpu {

// Runs work(part, parts) for every part, side by side or not.
using InParts = std::function<void(const std::function<void(int part, int parts)>&)>;

// Executable::apply on the state; `in_parts` spreads the parameters over threads, which never changes the result.
void apply_update(const nn::Graph& graph, const Kernels& kernels, std::span<const float> contribution,
                  const Update& update, const InParts& in_parts, ModelState& state);

}  // namespace dtrain::backend::cpu
