#include "pixel_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

namespace dtrain::config {
namespace {

constexpr std::array<float, 3> kUndivided = {1, 1, 1};

// A local response norm hardly changes the scale; a network may divide pixels by a layer of its own.
bool normalises(const nn::Node& node) {
  const auto* const scale = std::get_if<nn::Scale>(&node.layer);
  return std::holds_alternative<nn::BatchNorm>(node.layer) || std::holds_alternative<nn::LayerNorm>(node.layer) ||
         (scale && std::abs(scale->factor) < 1);
}

}  // namespace

std::optional<std::string> undivided_pixels(const nn::Graph& graph, const OptionSet& set, const TrainOptions& options) {
  const Option* const deviation = set.find("rgb-std");
  const bool is_default = deviation && deviation->source == Source::fallback;
  const bool learns = options.epochs > 0 && !options.benchmark && !options.test_io;
  if (!is_default || !learns || options.data.augment.std != kUndivided) return std::nullopt;
  if (std::ranges::any_of(graph.nodes, normalises)) return std::nullopt;
  return fmt::format(
      "{} has no normalisation layer, and with --rgb-std 1 its pixels go up to 255: at usual learning rates it learns "
      "nothing. --rgb-std 255 divides them; --rgb-std 1 keeps them so, without this warning",
      graph.name);
}

std::optional<std::string> faint_erasing(const TrainOptions& options) {
  const data::Augment& augment = options.data.augment;
  const bool is_noise = augment.random_erasing > 0 && augment.erasing_mode != data::ErasingMode::zero;
  const bool learns = options.epochs > 0 && !options.benchmark && !options.test_io;
  if (!is_noise || !learns || augment.std != kUndivided) return std::nullopt;
  return fmt::format(
      "--random-erasing-mode {} draws noise of deviation 1, which is nothing beside pixels that --rgb-std does not "
      "divide: give --rgb-std, such as 58; or --random-erasing-mode const",
      enum_name(kErasingNames, augment.erasing_mode));
}

}  // namespace dtrain::config
