#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/image_sizes.hpp>

#include "cli/command.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/option_values.hpp"
#include "config/pretrained.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "output_places.hpp"

namespace dtrain::cli {
namespace {

struct ExportCommand {
  config::CheckpointChoice checkpoint;
  std::optional<nn::Shape> image;
  std::string to = "safetensors";
  Path out;
  bool force = false;
  train::OnnxOptions onnx;
};

std::string shape_text(const nn::Shape& image) { return fmt::format("{},{},{}", image.c, image.h, image.w); }

void bind(config::OptionSet& set, ExportCommand& options) {
  config::bind_weights(set, options.checkpoint);
  set.add_custom(
         "--image-shape", "C,H,W",
         "size of the network's input: needed for MXNet files, which do not store it; for onnx, also one of the "
         "--aspect-groups of a detector: the model then takes pictures of this size",
         [&options](const std::string& text) { options.image = config::image_shape(text); },
         [&options] { return options.image ? shape_text(*options.image) : std::string(); })
      .comma_list = true;
  set.group("Result");
  set.add_choice("--to", options.to, {"safetensors", "onnx", "mxnet"},
                 "format to write; a safetensors file names tensors as PyTorch does")
      .required = true;
  config::refuse_folders(
      set.add("--out", options.out,
              "file or s3:// URL to write; for mxnet, the prefix of PATH-symbol.json and PATH-EPOCH.params, whose "
              "EPOCH has four digits"))
      .required = true;
  set.add("--force", options.force,
          "overwrite files that are not earlier exports, and the symbol of another network; files of checkpoints are "
          "never overwritten")
      .not_from_project = true;
  set.add("--with-preprocessing", options.onnx.preprocessing,
          "for onnx: take uint8 images [n, height, width, channels] of the network's size, and normalise them in the "
          "model; a detector's model makes the pixels outside of the picture zero");
  set.add("--softmax", options.onnx.softmax,
          "for onnx: give a classifier's probabilities instead of logits: their softmax, or, where it was trained "
          "with --bce-loss, the sigmoid of each");
}

std::vector<Path> export_checkpoint(const ExportCommand& options, const train::Checkpoint& checkpoint,
                                    const Path& out) {
  if (options.to == "onnx") return train::export_onnx(checkpoint, out, options.onnx);
  if (options.to == "mxnet") return train::export_mxnet(checkpoint, out, checkpoint.cursor.epoch);
  return train::export_safetensors(checkpoint, out);
}

std::vector<Path> files_to_write(const ExportCommand& options, const train::Checkpoint& checkpoint) {
  if (options.to != "mxnet") return {options.out};
  return train::mxnet_export_files(options.out, checkpoint.cursor.epoch);
}

// The manifest beside it is what makes a file part of a checkpoint, also the .params of MXNet.
bool is_of_checkpoint(const Path& file, const train::SharedStore& store) {
  const bool is_params = file.extension() == ".params";
  return train::is_checkpoint_file(is_params ? Path(file).replace_extension(".json") : file, store);
}

bool is_there(const Path& file, const train::SharedStore& store) {
  return store ? store->find(file.string()).has_value() : std::filesystem::is_regular_file(file);
}

void refuse_to_overwrite(const Path& file, bool force, const train::SharedStore& store) {
  if (!is_there(file, store)) return;
  if (is_of_checkpoint(file, store)) {
    throw UsageError(fmt::format("{}: is a file of a checkpoint, which would be destroyed", file.string()),
                     "name another file");
  }
  if (force || train::is_export(file, store)) return;
  throw UsageError(fmt::format("{}: is there already and is no earlier export", file.string()),
                   "--force writes over it; or name another file");
}

// The other .params would be left with a network that they do not fit.
void refuse_to_replace_symbol(const ExportCommand& options, const train::Checkpoint& checkpoint,
                              const train::SharedStore& store) {
  if (options.to != "mxnet" || options.force) return;
  const auto other = train::params_of_other_network(checkpoint, options.out, checkpoint.cursor.epoch, store);
  if (!other) return;
  throw UsageError(fmt::format("{}-symbol.json: is the symbol of another network, to which {} belongs",
                               options.out.string(), other->filename().string()),
                   "--force writes over it; or name another prefix");
}

// The highest epoch of MXNet's files that are there where it is above that of the checkpoint. nullopt: none.
std::optional<std::uint32_t> later_epoch(const ExportCommand& options, const train::Checkpoint& checkpoint,
                                         const train::SharedStore& store) {
  if (options.to != "mxnet") return std::nullopt;
  const std::vector<std::uint32_t> newest_first = train::list_mxnet(options.out, store).epochs;
  const bool is_later = !newest_first.empty() && newest_first.front() > checkpoint.cursor.epoch;
  return is_later ? std::optional(newest_first.front()) : std::nullopt;
}

// They may be of another run, and a prefix alone stands for its highest epoch.
void refuse_or_warn_of_later_epoch(const ExportCommand& options, const train::Checkpoint& checkpoint,
                                   const train::SharedStore& store, Reporter& reporter) {
  const std::optional<std::uint32_t> later = later_epoch(options, checkpoint, store);
  if (!later) return;
  const auto params_of = [&](std::uint32_t epoch) {
    return train::CheckpointName{options.out, epoch}.stem() + ".params";
  };
  const std::uint32_t epoch = checkpoint.cursor.epoch;
  const std::string there =
      fmt::format("{}: is there already, and eval, predict and export take this highest epoch, not {}",
                  params_of(*later), Path(params_of(epoch)).filename().string());
  if (options.force) return reporter.warn(fmt::format("{}, unless they get --load-epoch {}", there, epoch));
  throw UsageError(
      there, fmt::format("name another prefix; or --force writes beside it: then choose these files by --load-epoch {}",
                         epoch));
}

// A user who may write to a bucket need not have the right to read there.
void look_at_place(const ExportCommand& options, const train::Checkpoint& checkpoint, const train::SharedStore& store,
                   Reporter& reporter) try {
  for (const Path& file : files_to_write(options, checkpoint)) refuse_to_overwrite(file, options.force, store);
  refuse_to_replace_symbol(options, checkpoint, store);
  refuse_or_warn_of_later_epoch(options, checkpoint, store, reporter);
} catch (const net::AwsError& error) {
  if (error.facts().problem != net::AwsProblem::denied) throw;
  if (options.force) return;
  throw UsageError(fmt::format("--out {}: cannot see what is there: {}", options.out.string(), error.what()),
                   "--force writes all the same");
}

void refuse_what_only_onnx_has(const ExportCommand& options) {
  if (options.to == "onnx" || !(options.onnx.preprocessing || options.onnx.softmax)) return;
  throw UsageError(fmt::format("--{}: {} holds weights alone, only onnx holds such steps",
                               options.onnx.softmax ? "softmax" : "with-preprocessing", options.to),
                   "give --to onnx, or leave it out");
}

// A file that programs would take for one of another format.
void refuse_ending_of_another(const ExportCommand& options) {
  const std::string out = options.out.string();
  if (out == "-") throw UsageError("--out -: an export is a file, which no pipe can be", "name a file");
  const auto refuse = [&](const std::string& hint) {
    const std::string ending = lower_case(options.out.extension().string());
    throw UsageError(fmt::format("--out {}: --to {} writes no {} file", out, options.to, ending), hint);
  };
  // --to mxnet takes a prefix, behind which it sets endings of its own.
  if (options.to != "mxnet" && config::has_foreign_ending(options.out))
    refuse(fmt::format("name it {}", Path(options.out).replace_extension(options.to).string()));
  for (const std::string format : {"onnx", "safetensors"}) {
    if (options.to != format && lower_case(options.out.extension().string()) == "." + format)
      refuse(fmt::format("name another file, or give --to {}", format));
  }
}

// The sizes to which a detector's pictures are padded; empty: all to that of its input.
std::vector<nn::Shape> groups_of(const train::Checkpoint& checkpoint) {
  config::DataOptions data;
  data.image = checkpoint.graph.input();
  data.aspect_groups = config::aspect_groups_of(checkpoint.job.preprocessing);
  return config::group_shapes(data);
}

std::string shape_choices(const std::vector<nn::Shape>& groups) {
  std::vector<std::string> choices;
  for (const nn::Shape& group : groups) choices.push_back("--image-shape " + shape_text(group));
  return join(choices, " or ");
}

// A model of ONNX has one size. That of a group answers as the checkpoint does for pictures of this group.
void take_size_of_model(const ExportCommand& options, train::Checkpoint& checkpoint) {
  const std::vector<nn::Shape> groups = groups_of(checkpoint);
  const nn::Shape whole = checkpoint.graph.input();
  if (options.to != "onnx" || !options.image || groups.empty())
    return config::require_image_of(checkpoint, options.image);
  const nn::Shape image = *options.image;
  if (std::ranges::find(groups, image) == groups.end()) {
    if (image == whole) return;
    throw UsageError(fmt::format("--image-shape {}: neither the network's input, {}, nor one of its groups",
                                 shape_text(image), shape_text(whole)),
                     fmt::format("give {}, or leave it out", shape_choices(groups)));
  }
  checkpoint.graph = train::with_image(checkpoint.graph, image);
  Json::Object pixels = checkpoint.job.preprocessing.as_object();
  std::erase_if(pixels, [](const Json::Member& member) { return member.first == "aspect_groups"; });
  Json& preprocessing = checkpoint.job.preprocessing = Json::object({});
  for (auto& [name, value] : pixels) preprocessing[name] = std::move(value);
  preprocessing["image_shape"] = Json::array({image.c, image.h, image.w});
}

void note_lost_groups(const train::Checkpoint& checkpoint, Reporter& reporter) {
  const std::vector<nn::Shape> groups = groups_of(checkpoint);
  const nn::Shape& image = checkpoint.graph.input();
  if (groups.empty()) return;
  reporter.note(fmt::format(
      "`dtrain predict` pads each picture to the size of its group, and other programs pad it to {}x{}, the "
      "only size that the model takes: they find other boxes and scores. For a model of one group give {}",
      image.h, image.w, shape_choices(groups)));
}

void note_what_mxnet_lacks(const train::Checkpoint& checkpoint, Reporter& reporter) {
  if (const std::string lost = train::lost_in_mxnet(nn::loss_of(checkpoint.graph)); !lost.empty()) reporter.warn(lost);
  const Json& preprocessing = checkpoint.job.preprocessing;
  if (!preprocessing.is_object()) return;
  config::DataOptions data;
  data.image = checkpoint.graph.input();
  config::take_preprocessing(preprocessing, {}, data);
  config::take_test_views(preprocessing, {}, data);
  reporter.note(
      fmt::format("MXNet's files hold neither how pixels are prepared nor the names of the classes: to read them, eval "
                  "and predict need {}",
                  config::pixels_text(data)));
}

ExitCode act(const ExportCommand& options, const config::OptionSet&, Reporter& reporter) {
  refuse_what_only_onnx_has(options);
  refuse_ending_of_another(options);
  train::Checkpoint checkpoint = config::load_weights(options.checkpoint, options.image);
  take_size_of_model(options, checkpoint);
  const bool is_far = net::is_s3_url(options.out.string());
  const train::SharedStore store = is_far ? std::make_shared<net::ObjectStore>() : nullptr;
  look_at_place(options, checkpoint, store, reporter);
  remove_abandoned(options.out);
  const auto write = [&](const Path& out) { return export_checkpoint(options, checkpoint, out); };
  Json files = Json::array();
  for (const Path& file : train::export_to(options.out, write, store)) {
    files.push_back(file.string());
    if (!reporter.json()) reporter.answer(file.string());
  }
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.export/1"}, {"format", options.to}, {"files", files}}));
  }
  if (options.to == "mxnet") note_what_mxnet_lacks(checkpoint, reporter);
  if (options.to == "onnx") note_lost_groups(checkpoint, reporter);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_export() {
  auto command = make_command<ExportCommand>("export", "convert a checkpoint to another format", act);
  command->examples = {"dtrain export m/r8 --load-epoch 1 --to onnx --out r8.onnx",
                       "dtrain export m/r8 --to onnx --with-preprocessing --softmax --out r8.onnx",
                       "dtrain export m/mask --to onnx --with-preprocessing --out mask.onnx",
                       "dtrain export m/p --to safetensors --out resnet50.safetensors",
                       "dtrain export m/r8 --load-epoch 1 --to mxnet --out x/r8"};
  command->see_also = {"inspect", "eval"};
  return command;
}

}  // namespace dtrain::cli
