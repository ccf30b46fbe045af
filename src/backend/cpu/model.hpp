// The persistent state of an executable and the one phase that changes it.
#pragma once

#include "kernels/kernels.hpp"
#include "update/layer_wise.hpp"
#include "update/muon.hpp"

namespace dtrain::backend::cpu {

// Executable::apply on the state; `in_parts` spreads the parameters over threads, which never changes the result.
void apply_update(const nn::Graph& graph, const Kernels& kernels, std::span<const float> contribution,
                  const Update& update, const InParts& in_parts, Muon& muon, LayerWise& layer_wise, ModelState& state);

}  // namespace dtrain::backend::cpu
