#include "recording_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::backend::cuda {
namespace {

bool by_definition(const ConvolutionFacts& convolution) { return convolution.engine.empty(); }
bool own_failed(const ConvolutionFacts& convolution) { return convolution.own_failed; }

}  // namespace

Json json_of(const RecordingFacts& facts) {
  Json convolutions = Json::array();
  for (const ConvolutionFacts& convolution : facts.convolutions) {
    Json one = Json::object({{"op", convolution.name},
                             {"direction", direction_name(convolution.direction)},
                             {"engine", by_definition(convolution) ? Json() : Json(convolution.engine)}});
    if (!convolution.own_refused.empty()) one["own_refused"] = convolution.own_refused;
    convolutions.push_back(std::move(one));
  }
  Json refused = Json::array();
  for (const std::string& kernel : facts.refused_kernels) refused.push_back(kernel);
  return Json::object({{"recorded", facts.settled ? Json(facts.one_launch) : Json()},
                       {"by_definition", std::int64_t{std::ranges::count_if(facts.convolutions, by_definition)}},
                       {"convolutions", convolutions},
                       {"refused_kernels", refused}});
}

std::vector<std::string> warnings_of(const RecordingFacts& facts) {
  if (!facts.settled) return {};
  std::vector<std::string> warnings;
  if (!facts.one_launch) {
    warnings.push_back(
        fmt::format("the GPU's work could not be captured as a graph ({}): each step starts its kernels "
                    "one by one, which is slower",
                    facts.refusal));
  }
  const auto slow = std::ranges::count_if(facts.convolutions, by_definition);
  if (slow > 0) {
    const ConvolutionFacts& first = *std::ranges::find_if(facts.convolutions, by_definition);
    warnings.push_back(
        fmt::format("cuDNN has no plan for {} of {} convolutions (the first: {}, {}): they are computed "
                    "by their definition, which is much slower",
                    slow, facts.convolutions.size(), first.name, direction_name(first.direction)));
  }
  if (!facts.refused_kernels.empty()) {
    warnings.push_back(
        fmt::format("{} of dtrain's own kernels are not used (the first: {}): their work is computed by its "
                    "definition, which is right and slower",
                    facts.refused_kernels.size(), facts.refused_kernels.front()));
  }
  const auto own = std::ranges::count_if(facts.convolutions, own_failed);
  if (own > 0) {
    const ConvolutionFacts& first = *std::ranges::find_if(facts.convolutions, own_failed);
    warnings.push_back(
        fmt::format("dtrain's own kernel is not used for {} of {} convolutions (the first: {}, {}): {}; cuDNN "
                    "computes them",
                    own, facts.convolutions.size(), first.name, direction_name(first.direction), first.own_refused));
  }
  return warnings;
}

}  // namespace dtrain::backend::cuda
