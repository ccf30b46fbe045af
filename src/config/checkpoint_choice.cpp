#include "checkpoint_choice.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::config {

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
  if (ending == ".json") return train::load_checkpoint_file(choice.prefix);
  if (ending == ".safetensors") return train::load_checkpoint_file(Path(choice.prefix).replace_extension(".json"));
  if (ending == ".onnx") return train::import_onnx(choice.prefix);
  const auto names = train::list_checkpoints(choice.prefix);
  if (names.empty()) {
    throw DataError(fmt::format("{}: no checkpoint of this prefix", choice.prefix.string()),
                    "`dtrain train --model-prefix PREFIX` writes PREFIX-0001.safetensors and PREFIX-0001.json");
  }
  return train::load_checkpoint_file(names.front().stem() + ".json");
}

}  // namespace dtrain::config
