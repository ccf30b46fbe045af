#include "residual_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {
namespace {

constexpr int kSmallImageHeight = 32;
constexpr int kFirstSmallBottleneck = 164;
constexpr int kDeepestSmall = 1202;  // He et al. 2016 go to 1001
constexpr int kFirstLargeBottleneck = 50;
constexpr int kWidest = 4096;

struct LargeDepth {
  int depth;
  std::vector<int> units_of_stage;
};

const std::vector<LargeDepth>& large_depths() {
  static const std::vector<LargeDepth> depths = {{18, {2, 2, 2, 2}},   {34, {3, 4, 6, 3}},   {50, {3, 4, 6, 3}},
                                                 {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}, {200, {3, 24, 36, 3}},
                                                 {269, {3, 30, 48, 8}}};
  return depths;
}

int base_width(const NetworkOptions& options, int standard) {
  const int width = options.width == 0 ? standard : options.width;
  if (width < 1 || width > kWidest) {
    throw UsageError(fmt::format("{}: a width of {} channels is not in 1 to {}", options.name, width, kWidest));
  }
  return width;
}

// Stages double the channels; each but the first halves the image in its first unit.
std::vector<ResidualUnit> lay_out(std::span<const int> units_of_stage, int channels) {
  std::vector<ResidualUnit> units;
  for (std::size_t stage = 0; stage < units_of_stage.size(); ++stage) {
    for (int unit = 0; unit < units_of_stage[stage]; ++unit) {
      units.push_back({.name = fmt::format("stage{}_unit{}", stage + 1, unit + 1),
                       .sum_name = fmt::format("_plus{}", units.size()),
                       .channels = channels << stage,
                       .stride = unit == 0 && stage > 0 ? 2 : 1,
                       .projects = unit == 0});
    }
  }
  return units;
}

ResidualPlan plan_small(const NetworkOptions& options) {
  const int depth = options.num_layers == 0 ? 110 : options.num_layers;
  const bool bottleneck = depth >= kFirstSmallBottleneck;
  const int layers_per_unit = bottleneck ? 9 : 6;  // of one unit in each of the three stages
  if (depth < 8 || depth > kDeepestSmall || (depth - 2) % layers_per_unit != 0) {
    throw UsageError(
        fmt::format("{} has no depth {} for images up to {} pixels high: it has 6n+2 below {} (8, 14, 20, 26, "
                    "32, 38, 44, 50, 56, ..., 110, ...) and 9n+2 from there on (164, 173, ...)",
                    options.name, depth, kSmallImageHeight, kFirstSmallBottleneck),
        "choose one of them with setting 'num-layers', or larger images with setting 'image-shape'");
  }
  const int width = base_width(options, 16);
  const std::vector<int> units(3, (depth - 2) / layers_per_unit);
  return {depth, true, bottleneck, width, lay_out(units, bottleneck ? 4 * width : width)};
}

// `where` says for which images; it follows the depth in the message.
ResidualPlan plan_large(const NetworkOptions& options, std::string_view where) {
  const int depth = options.num_layers == 0 ? 50 : options.num_layers;
  const auto found = std::ranges::find(large_depths(), depth, &LargeDepth::depth);
  if (found == large_depths().end()) {
    std::vector<int> depths;
    for (const LargeDepth& known : large_depths()) depths.push_back(known.depth);
    throw UsageError(
        fmt::format("{} has no depth {}{}: it has {}", options.name, depth, where, fmt::join(depths, ", ")),
        "choose one of them with setting 'num-layers'");
  }
  const bool bottleneck = depth >= kFirstLargeBottleneck;
  const int width = base_width(options, 64);
  return {depth, false, bottleneck, width, lay_out(found->units_of_stage, bottleneck ? 4 * width : width)};
}

}  // namespace

ResidualPlan plan_residual_network(const NetworkOptions& options) {
  if (options.image.h <= kSmallImageHeight) return plan_small(options);
  return plan_large(options, fmt::format(" for images more than {} pixels high", kSmallImageHeight));
}

ResidualPlan plan_imagenet_network(const NetworkOptions& options) { return plan_large(options, ""); }

}  // namespace dtrain::nn
