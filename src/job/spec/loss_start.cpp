#include "loss_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/labels.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::job {
namespace {

constexpr std::array kLossOptions = {"label-smoothing", "bce-loss", "bce-target-thresh", "focal-gamma",
                                     "class-weights"};

// By the number of images, so that the mean over all images is 1. A class without images weighs nothing, and records
// that cannot be read count for none.
std::vector<float> balanced_weights(const TrainRun& run) {
  const int classes = run.graph.classes();
  const data::RecordSet set(data::find_records(run.sources.train.string(), run.remote.store), with_cache(run));
  const auto wanted = static_cast<std::uint64_t>(run.options.data.num_examples);
  const std::uint64_t count = wanted > 0 ? std::min<std::uint64_t>(wanted, set.size()) : set.size();
  const auto labels =
      data::read_labels(set, static_cast<std::uint32_t>(count), classes, run.options.data.max_bad_records);
  const auto counts = data::class_counts(labels, classes);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto present = static_cast<double>(std::ranges::count_if(counts, [](auto n) { return n > 0; }));
  std::vector<float> weights;
  for (const std::uint32_t images : counts) {
    weights.push_back(images > 0 ? static_cast<float>(all / (present * images)) : 0);
  }
  return weights;
}

std::size_t label_of(const std::string& text, const std::vector<std::string>& names, int classes) {
  const auto named = std::ranges::find(names, text);
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  const auto label = parse_integer(text);
  if (label && *label >= 0 && *label < classes) return static_cast<std::size_t>(*label);
  throw DataError(fmt::format("'{}' is no class", text),
                  names.empty() ? fmt::format("labels are 0 to {}", classes - 1)
                                : fmt::format("classes are {}", join_first(names, 8, ", ")));
}

std::vector<float> weights_in_file(const Path& file, const std::vector<std::string>& names, int classes) {
  std::vector<float> weights(static_cast<std::size_t>(classes), 1.0f);
  std::vector<std::size_t> lines(weights.size(), 0);  // that weigh the classes; 0: none
  for (const CsvRow& row : parse_csv(read_file(file), file.string())) {
    const std::string where = fmt::format("{}:{}", file.string(), row.line);
    const auto weight = row.fields.size() == 2 ? parse_number(trim(row.fields[1])) : std::nullopt;
    if (!weight || !(*weight >= 0) || !std::isfinite(static_cast<float>(*weight))) {
      throw DataError(where + ": is not CLASS,WEIGHT with a weight from 0 to 3e38");
    }
    std::size_t label = 0;
    try {
      label = label_of(std::string(trim(row.fields[0])), names, classes);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", where, error.what()), error.hint());
    }
    if (lines[label] > 0) {
      throw DataError(fmt::format("{}: class {} has a weight already, on line {}", where,
                                  data::label_text(static_cast<std::int64_t>(label), names), lines[label]),
                      "leave one of the two lines out");
    }
    lines[label] = row.line;
    weights[label] = static_cast<float>(*weight);
  }
  if (std::ranges::all_of(weights, [](float weight) { return weight == 0; })) {
    throw DataError(file.string() + ": every class weighs 0, so that nothing could be learned",
                    "give one class a weight above 0; a class without a row weighs 1");
  }
  return weights;
}

void say_weights(const std::vector<float>& weights, const std::vector<std::string>& names, Reporter& reporter) {
  const auto [least, most] = std::ranges::minmax_element(weights);
  const auto text = [&](auto at) {
    return fmt::format("{:.3g} for class {}", *at, data::label_text(at - weights.begin(), names));
  };
  reporter.note(fmt::format("The loss weighs classes, from {} to {}", text(least), text(most)));
}

nn::SoftmaxLoss chosen_loss(const config::OptionSet& set, const TrainRun& run, nn::SoftmaxLoss loss) {
  const config::TrainOptions& options = run.options;
  if (set.chosen("label-smoothing")) loss.label_smoothing = options.network.options.label_smoothing;
  if (set.chosen("bce-loss")) loss.kind = options.loss.bce ? nn::LossKind::sigmoid : nn::LossKind::softmax;
  if (set.chosen("bce-target-thresh")) loss.target_threshold = options.loss.target_threshold;
  if (set.chosen("focal-gamma")) loss.focal_gamma = options.loss.focal_gamma;
  if (set.chosen("class-weights")) {
    const std::string& weights = options.loss.class_weights;
    loss.class_weights = weights.empty() ? std::vector<float>()
                         : weights == config::kBalanced
                             ? balanced_weights(run)
                             : weights_in_file(weights, options.data.class_names, run.graph.classes());
  }
  return loss;
}

// A cut below all targets, or above them, leaves nothing to tell classes apart.
void require_targets(const nn::SoftmaxLoss& loss, int classes) {
  const double smoothing = loss.label_smoothing, threshold = loss.target_threshold;
  const double least = smoothing / classes, most = least + (1 - smoothing);
  if (threshold >= 1 || (threshold > least && threshold < most)) return;
  throw UsageError(
      fmt::format("--bce-target-thresh {}: with {} classes and --label-smoothing {}, targets are {:.4g} to {:.4g}, and "
                  "all of them would become {}",
                  loss.target_threshold, classes, loss.label_smoothing, least, most, threshold <= least ? 1 : 0),
      fmt::format("give a share between {:.4g} and {:.4g}; or 1, which takes targets as they are", least, most));
}

}  // namespace

void settle_loss(const config::OptionSet& set, bool resumes, TrainRun& run, Reporter& reporter) {
  const auto given = std::ranges::find_if(kLossOptions, [&](const char* name) { return set.chosen(name); });
  if (given == kLossOptions.end()) return;
  const nn::SoftmaxLoss before = nn::loss_of(run.graph), loss = chosen_loss(set, run, before);
  if (set.chosen("bce-target-thresh") && loss.kind != nn::LossKind::sigmoid) {
    throw UsageError("--bce-target-thresh: softmax cross-entropy takes targets as they are", "add --bce-loss");
  }
  const bool cuts_targets = loss.kind == nn::LossKind::sigmoid && loss.target_threshold < 1;
  if (cuts_targets) require_targets(loss, run.graph.classes());
  if (cuts_targets && loss.label_smoothing > 0 && set.chosen("label-smoothing") && !run.options.mix.any()) {
    reporter.warn(
        "--label-smoothing has no effect beside --bce-target-thresh: without --mixup and --cutmix, the target of an "
        "image's own class becomes 1 and any other 0");
  }
  if (resumes && loss != before) {
    throw UsageError(fmt::format("--{}: the checkpoint was trained with another loss", *given),
                     fmt::format("leave --{} out to resume, or begin a new run with --load-epoch", *given));
  }
  nn::set_loss(run.graph, loss);
  const bool is_for_mxnet = run.options.checkpoint_format == train::CheckpointFormat::mxnet;
  if (const std::string lost = train::lost_in_mxnet(loss); is_for_mxnet && !lost.empty()) reporter.warn(lost);
  if (!loss.class_weights.empty()) say_weights(loss.class_weights, run.options.data.class_names, reporter);
}

}  // namespace dtrain::job
