#include "checkpoint_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/export.hpp>

#include "option_values.hpp"

namespace dtrain::config {
namespace {

constexpr std::array<std::string_view, 5> kForeignWeights{".pth", ".pt", ".bin", ".npz", ".params"};
// Endings by which load() takes PREFIX for a file.
constexpr std::array<std::string_view, 4> kFilesOfPrefix{".json", ".safetensors", ".params", ".onnx"};

// Weights of another program, or of an export, lack a manifest.
bool is_bare(const Path& file) {
  std::error_code error;
  return !data::is_remote(file) && std::filesystem::is_regular_file(file, error) &&
         !std::filesystem::exists(Path(file).replace_extension(".json"), error);
}

[[noreturn]] void refuse_bare(const Path& file) {
  throw DataError(
      fmt::format("{}: is no checkpoint: there is no {} beside it", file.string(),
                  Path(file).replace_extension(".json").string()),
      fmt::format("`dtrain import {} --network NAME --out PREFIX` makes a checkpoint of weights", file.string()));
}

// The prefix of "m/r8-0004.json", "m/r8-0004-step00000120.json" and, of MXNet, "m/r8-symbol.json".
std::optional<Path> prefix_of_file(const Path& file) {
  if (file.extension() != ".json") return std::nullopt;
  const std::string whole = Path(file).replace_extension().string();
  for (std::size_t cut = whole.rfind('-'); cut != whole.npos && cut > 0; cut = whole.rfind('-', cut - 1)) {
    const Path prefix = whole.substr(0, cut);
    if (!prefix.has_filename()) break;
    if (train::name_of_manifest(prefix, file) || whole.substr(cut) == "-symbol") return prefix;
  }
  return std::nullopt;
}

// Of the checkpoints in the folder, in the order of their names.
std::vector<std::string> prefixes_in(const Path& folder) {
  std::set<std::string> prefixes;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error); !error && file != end(file); file.increment(error)) {
    if (const auto prefix = prefix_of_file(folder / file->path().filename())) prefixes.insert(prefix->string());
  }
  return {prefixes.begin(), prefixes.end()};
}

std::string hint_of_prefixes(const Path& given) {
  constexpr std::size_t kMostPrefixes = 6;
  std::vector<std::string> prefixes = data::is_remote(given) ? std::vector<std::string>() : prefixes_in(given);
  if (prefixes.empty())
    return "`dtrain train --model-prefix PREFIX` writes PREFIX-0001.safetensors and PREFIX-0001.json";
  const bool are_many = prefixes.size() > kMostPrefixes;
  prefixes.resize(std::min(prefixes.size(), kMostPrefixes));
  return fmt::format("it is a folder; name a prefix that is in it: {}{}", join(prefixes, ", "),
                     are_many ? ", ..." : "");
}

// The manifest of "m/r8-0004", as messages name a checkpoint.
std::optional<Path> manifest_of_name(const Path& name) {
  const Path manifest = name.string() + ".json";
  const auto prefix = prefix_of_file(manifest);
  if (!prefix) return std::nullopt;
  const auto names = train::list_checkpoints(*prefix);
  const bool is_there = std::ranges::find(names, name.string(), &train::CheckpointName::stem) != names.end();
  return is_there ? std::optional(manifest) : std::nullopt;
}

// The manifest of the checkpoint that a file is part of, by its name. Beside its tensors there may be MXNet's .params;
// those of others have no manifest.
std::optional<Path> manifest_of_file(const Path& file) {
  const Path ending = file.extension(), manifest = Path(file).replace_extension(".json");
  if (ending == ".json" || ending == ".safetensors") return manifest;
  return ending == ".params" && train::is_checkpoint_file(manifest) ? std::optional(manifest) : std::nullopt;
}

// What "m/r8-0004.params" names beside m/r8-symbol.json, in MXNet's format.
struct MxnetFile {
  Path prefix;
  std::uint32_t epoch = 0;
};

std::optional<MxnetFile> mxnet_file(const Path& file) {
  if (file.extension() != ".params" || data::is_remote(file)) return std::nullopt;
  const std::string stem = Path(file).replace_extension().string();
  const auto dash = stem.rfind('-');
  const auto epoch = dash == stem.npos ? std::nullopt : parse_integer(std::string_view(stem).substr(dash + 1));
  if (!epoch || *epoch < 0 || *epoch > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  const MxnetFile found{.prefix = stem.substr(0, dash), .epoch = static_cast<std::uint32_t>(*epoch)};
  const bool is_its_name = fmt::format("{}-{:04}", found.prefix.string(), found.epoch) == stem;
  const bool is_there =
      is_its_name && train::newest_mxnet_epoch(found.prefix) && train::mxnet_is_there(found.prefix, found.epoch);
  return is_there ? std::optional(found) : std::nullopt;
}

// Of one checkpoint there is no epoch to choose.
void refuse_epoch_of_file(const Path& choice) {
  if (data::is_remote(choice) || !train::list_checkpoints(choice).empty() || train::newest_mxnet_epoch(choice)) return;
  const auto manifest = manifest_of_file(choice);
  if (!(manifest && train::is_checkpoint_file(*manifest)) && !manifest_of_name(choice) && !mxnet_file(choice)) return;
  throw SettingError("load-epoch", choice.string() + " is a file of one checkpoint", "leave it out");
}

train::Checkpoint load_newest(const Path& prefix, std::optional<nn::Shape> image) {
  const auto names = train::list_checkpoints(prefix);
  if (!names.empty()) return train::load_checkpoint_file(names.front().stem() + ".json");
  if (const auto epoch = train::newest_mxnet_epoch(prefix)) return train::load_checkpoint(prefix, *epoch, image);
  if (const auto manifest = manifest_of_name(prefix)) return train::load_checkpoint_file(*manifest);
  if (has_foreign_ending(prefix) && is_bare(prefix)) refuse_bare(prefix);
  throw DataError(fmt::format("{}: no checkpoint of this prefix", prefix.string()), hint_of_prefixes(prefix));
}

}  // namespace

bool has_foreign_ending(const Path& file) {
  return std::ranges::find(kForeignWeights, lower_case(file.extension().string())) != kForeignWeights.end();
}

void refuse_prefix_of_file(const Path& prefix, const std::string& option) {
  const std::string ending = prefix.extension().string();
  if (std::ranges::find(kFilesOfPrefix, ending) == kFilesOfPrefix.end()) return;
  throw UsageError(fmt::format("{} {}: is a prefix, to which names of files are added, and other commands take a name "
                               "that ends in {} for a file",
                               option, prefix.string(), ending),
                   fmt::format("leave {} out: {} {}", ending, option, Path(prefix).replace_extension().string()));
}

void bind_epoch(OptionSet& set, std::optional<int>& epoch, std::string help) {
  static constexpr const char* kBest = "best";
  set.add_number(
         "--load-epoch", "N|best", std::move(help), at_least(0),
         [&epoch](const std::string& text) {
           if (text != kBest && !parse_integer(text)) {
             throw UsageError(fmt::format("must be a whole number or {}, not '{}'", kBest, text));
           }
           epoch = text == kBest ? kBestEpoch : whole_number<int>(text, at_least(0));
         },
         [&epoch] { return !epoch                 ? std::string()
                           : *epoch == kBestEpoch ? kBest
                                                  : std::to_string(*epoch); })
      .offers = Offers::epochs;
}

int settled_epoch(const Path& prefix, int epoch, const train::SharedStore& store) {
  return epoch == kBestEpoch ? static_cast<int>(train::best_checkpoint(prefix, store).epoch) : epoch;
}

void bind_checkpoint(OptionSet& set, CheckpointChoice& choice) {
  set.group("Checkpoint");
  Option& prefix =
      set.add("PREFIX", choice.prefix,
              "the --model-prefix of the training run, the .json, .safetensors or .params file of a checkpoint, or an "
              ".onnx model");
  prefix.required = true;
  prefix.offers = Offers::checkpoints;
  bind_epoch(set, choice.epoch,
             "epoch of the checkpoint to load, or best: that of the highest validation accuracy (default the newest)");
}

void bind_shape_of_mxnet(OptionSet& set, std::optional<nn::Shape>& image) {
  set.add_custom(
         "--image-shape", "C,H,W", kShapeOfMxnet, [&image](const std::string& text) { image = image_shape(text); },
         [&image] { return image ? fmt::format("{},{},{}", image->c, image->h, image->w) : std::string(); })
      .comma_list = true;
}

void bind_weights(OptionSet& set, CheckpointChoice& choice) {
  bind_checkpoint(set, choice);
  set.add("--last-weights", choice.last_weights,
          "use the weights of the last step where the checkpoint has an average of them (train --ema)");
}

train::Checkpoint load_weights(const CheckpointChoice& choice, std::optional<nn::Shape> image) {
  train::Checkpoint checkpoint = load(choice, image);
  if (choice.last_weights) checkpoint.state.average.clear();
  train::use_average(checkpoint);
  return checkpoint;
}

train::Checkpoint load(const CheckpointChoice& choice, std::optional<nn::Shape> image) {
  if (choice.epoch) {
    refuse_epoch_of_file(choice.prefix);
    const int epoch = settled_epoch(choice.prefix, *choice.epoch);
    return train::load_checkpoint(choice.prefix, static_cast<std::uint32_t>(epoch), image);
  }
  const Path ending = choice.prefix.extension();
  if (ending == ".safetensors" && is_bare(choice.prefix)) refuse_bare(choice.prefix);
  if (const auto manifest = manifest_of_file(choice.prefix)) return train::load_checkpoint_file(*manifest);
  if (const auto file = mxnet_file(choice.prefix)) return train::load_checkpoint(file->prefix, file->epoch, image);
  if (ending == ".onnx") return train::import_onnx(choice.prefix);
  return load_newest(choice.prefix, image);
}

}  // namespace dtrain::config
