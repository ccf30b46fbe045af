#include "checkpoint_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::config {
namespace {

constexpr std::array<std::string_view, 5> kForeignWeights{".pth", ".pt", ".bin", ".npz", ".params"};

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

train::Checkpoint load_newest(const Path& prefix, std::optional<nn::Shape> image) {
  const auto names = train::list_checkpoints(prefix);
  if (!names.empty()) return train::load_checkpoint_file(names.front().stem() + ".json");
  if (const auto epoch = train::newest_mxnet_epoch(prefix)) return train::load_checkpoint(prefix, *epoch, image);
  const bool is_foreign = std::ranges::find(kForeignWeights, prefix.extension().string()) != kForeignWeights.end();
  if (is_foreign && is_bare(prefix)) refuse_bare(prefix);
  throw DataError(fmt::format("{}: no checkpoint of this prefix", prefix.string()),
                  "`dtrain train --model-prefix PREFIX` writes PREFIX-0001.safetensors and PREFIX-0001.json");
}

}  // namespace

void bind_checkpoint(OptionSet& set, CheckpointChoice& choice) {
  set.group("Checkpoint");
  Option& prefix =
      set.add("PREFIX", choice.prefix,
              "the --model-prefix of the training run, the .json or .safetensors file of a checkpoint, or an .onnx "
              "model");
  prefix.required = true;
  prefix.offers = Offers::checkpoints;
  set.add("--load-epoch", choice.epoch, "N", "epoch of the checkpoint to load (default the newest)", at_least(0))
      .offers = Offers::epochs;
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
  if (choice.epoch) return train::load_checkpoint(choice.prefix, static_cast<std::uint32_t>(*choice.epoch), image);
  const Path ending = choice.prefix.extension();
  if (ending == ".safetensors" && is_bare(choice.prefix)) refuse_bare(choice.prefix);
  if (ending == ".json" || ending == ".safetensors")
    return train::load_checkpoint_file(Path(choice.prefix).replace_extension(".json"));
  if (ending == ".onnx") return train::import_onnx(choice.prefix);
  return load_newest(choice.prefix, image);
}

}  // namespace dtrain::config
