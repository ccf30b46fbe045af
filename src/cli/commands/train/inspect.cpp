#include <fmt/format.h>

#include <dtrain/nn/graph_json.hpp>

#include "cli/command.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/pretrained.hpp"

namespace dtrain::cli {
namespace {

struct InspectCommand {
  config::CheckpointChoice checkpoint;
  std::optional<nn::Shape> image;
  bool graph = false;
};

void bind(config::OptionSet& set, InspectCommand& options) {
  config::bind_checkpoint(set, options.checkpoint);
  config::bind_shape_of_mxnet(set, options.image);
  set.group("Options").add("--graph", options.graph,
                           "print only the network, in the form that `train --network FILE.json` reads");
}

Json tensors_json(const std::vector<nn::TensorView>& tensors) {
  Json list = Json::array();
  for (const nn::TensorView& tensor : tensors) {
    Json shape = Json::array();
    for (std::int64_t extent : tensor.shape) shape.push_back(extent);
    list.push_back(Json::object({{"name", tensor.name}, {"shape", shape}}));
  }
  return list;
}

// "m/r8" of "m/r8-0004.json" and of "m/r8-0004", which stand where the cursor says.
Path prefix_of(const Path& choice, const train::Cursor& cursor) {
  const std::string place = train::CheckpointName{"", cursor.epoch, cursor.step}.stem();
  for (const std::string& stem : {choice.string(), Path(choice).replace_extension().string()}) {
    if (stem.ends_with(place)) return stem.substr(0, stem.size() - place.size());
  }
  return choice;
}

Json document(const train::Checkpoint& checkpoint, const Path& choice) {
  const train::JobFacts& job = checkpoint.job;
  Json json = Json::object({{"schema", "dtrain.inspect/1"}, {"network", checkpoint.graph.name}});
  json["weights_sha256"] = train::weights_sha256(checkpoint);
  json["state_sha256"] = train::state_sha256(checkpoint);
  json["epoch"] = checkpoint.cursor.epoch;
  json["step"] = checkpoint.cursor.step;
  json["samples_seen"] = checkpoint.cursor.samples_seen;
  json["updates"] = checkpoint.state.updates;
  if (const train::BestEpoch& best = checkpoint.best; best.accuracy >= 0) {
    json["best"] = train::CheckpointName{prefix_of(choice, checkpoint.cursor), best.epoch}.stem();
    json["best_accuracy"] = best.accuracy;
  }
  json["seed"] = job.seed;
  json["samples"] = job.samples;
  json["global_batch"] = job.global_batch;
  if (job.rate_batch > 0) {
    json["rate_batch"] = job.rate_batch;
  } else {
    json["logical_shards"] = job.logical_shards;
  }
  if (job.worker_batch > 0) json["worker_batch"] = job.worker_batch;
  if (job.local.any()) json["local_steps"] = train::to_json(job.local);
  if (job.compression.any()) json["compression"] = train::compression_text(job.compression);
  json["generation"] = job.generation;
  json["dtype"] = job.dtype;
  json["optimizer"] = nn::to_json(job.optimizer);
  json["schedule"] = nn::to_json(job.schedule);
  json["preprocessing"] = job.preprocessing;
  json["parameters"] = checkpoint.graph.parameter_count;
  json["tensors"] = tensors_json(checkpoint.graph.parameters);
  json["statistics"] = tensors_json(checkpoint.graph.statistics);
  return json;
}

void answer_table(const train::Checkpoint& checkpoint, const Path& choice, Reporter& reporter) {
  const Json all = document(checkpoint, choice);
  for (const auto& [key, value] : all.as_object()) {
    if (key == "tensors" || key == "statistics" || key == "schema") continue;
    reporter.answer(fmt::format("{:<16}{}", key, value.is_string() ? value.as_string() : value.dump()));
  }
  for (const auto* tensors : {&checkpoint.graph.parameters, &checkpoint.graph.statistics}) {
    for (const nn::TensorView& tensor : *tensors) {
      reporter.answer(fmt::format("{:<40}[{}]", tensor.name, fmt::join(tensor.shape, ", ")));
    }
  }
}

ExitCode act(const InspectCommand& options, const config::OptionSet&, Reporter& reporter) {
  const train::Checkpoint checkpoint = config::load(options.checkpoint, options.image);
  config::require_image_of(checkpoint, options.image);
  if (options.graph) {
    reporter.answer(nn::graph_to_json(checkpoint.graph).dump(reporter.json() ? -1 : 1));
  } else if (reporter.json()) {
    reporter.answer_json(document(checkpoint, options.checkpoint.prefix));
  } else {
    answer_table(checkpoint, options.checkpoint.prefix, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_inspect() {
  auto command = make_command<InspectCommand>("inspect", "show the facts, hashes and tensors of a checkpoint", act);
  command->examples = {"dtrain inspect m/r8 --load-epoch 1", "dtrain inspect m/r8-0001.safetensors --json",
                       "dtrain inspect m/r8 --load-epoch 1 --graph"};
  command->see_also = {"eval", "export"};
  return command;
}

}  // namespace dtrain::cli
