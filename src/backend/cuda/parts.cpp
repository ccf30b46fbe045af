#include "parts.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {
namespace {

// Where the tensors of a node begin in the flat buffer, or -1.
std::int64_t first_float(const Model& model, int index) {
  const nn::Node& node = model.node(index);
  return node.parameters.empty() ? -1 : model.parameter(index, 0);
}

// From the copy of the first weight of the range to the end of the last one's.
FloatRange copies_of(const Model& model, const FloatRange& floats) {
  std::int64_t first = model.copied, end = 0;
  for (const PackedWeight& weight : model.weights) {
    if (weight.flat < floats.first || weight.flat >= floats.first + floats.size) continue;
    first = std::min(first, weight.first);
    end = std::max(end, weight.first + weight.size);
  }
  return end > first ? FloatRange{first, end - first} : FloatRange{};
}

}  // namespace

std::vector<ContributionPart> parts_of(const Model& model, std::int64_t least_floats) {
  const ContributionLayout layout(model.graph);
  const int last = static_cast<int>(model.graph.nodes.size()) - 1;
  std::vector<ContributionPart> parts = {{{layout.gradients, layout.size() - layout.gradients}, last, {}}};
  std::int64_t end = layout.gradients;
  for (int node = last; node >= 0 && end > 0; --node) {
    const std::int64_t first = first_float(model, node);
    if (first < 0 || (end - first < least_floats && first > 0)) continue;
    DTRAIN_CHECK(first < end, "the tensors of a graph lie in the order of its nodes");
    const FloatRange floats{first, end - first};
    parts.push_back({floats, node, copies_of(model, floats)});
    end = first;
  }
  DTRAIN_CHECK(end == 0, "a gradient that no node has");
  return parts;
}

}  // namespace dtrain::backend::cuda
