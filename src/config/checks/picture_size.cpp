#include "picture_size.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/dataset_stats.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::config {
namespace {

int shorter_side(const nn::Shape& input) { return std::min(input.h, input.w); }

// One file of a set stands for the others. A file without an index, which the loader scans, is not scanned twice.
std::optional<int> shorter_edge_in(const Path& records) try {
  if (data::is_remote(records)) return std::nullopt;
  const Path first = data::find_records(records.string()).front();
  std::error_code error;
  if (data::is_remote(first) || !std::filesystem::exists(data::index_path(first), error)) return std::nullopt;
  return data::typical_shorter_edge(data::RecordSet({first}));
} catch (const DataError&) {
  return std::nullopt;  // the loader reports it
}

}  // namespace

bool is_far_larger(int shorter_edge, const nn::Shape& input) {
  constexpr int kMostTimes = 2;
  return shorter_edge > kMostTimes * shorter_side(input);
}

std::string options_for_large_pictures(const nn::Shape& input) {
  constexpr nn::PretrainedImages kUsual;
  return fmt::format("--resize {} --random-resized-crop 1", shorter_side(input) * kUsual.resize / kUsual.size);
}

std::optional<std::string> small_windows(const Path& records, const OptionSet& set, const TrainOptions& options) {
  const DataOptions& data = options.data;
  const bool learns = options.epochs > 0 && !options.benchmark && !options.test_io;
  if (!learns || data.detection || set.chosen("resize") || data.augment.resize > 0) return std::nullopt;
  const std::optional<int> edge = shorter_edge_in(records);
  if (!edge || !is_far_larger(*edge, data.image)) return std::nullopt;
  const bool is_evaluation = data.augment.random_resized_crop;
  return fmt::format(
      "the pictures of {} have about {} pixels at their shorter edge, and {} windows of {}x{} pixels: {} shows "
      "most of each picture; --resize 0 keeps them so, without this warning",
      records.string(), *edge, is_evaluation ? "evaluation sees" : "training and evaluation see", data.image.h,
      data.image.w, options_for_large_pictures(data.image));
}

}  // namespace dtrain::config
