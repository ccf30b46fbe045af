#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/train/trainer.hpp>

#include "cli/command.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/compute_options.hpp"
#include "config/data_options.hpp"

namespace dtrain::cli {
namespace {

struct EvalCommand {
  config::CheckpointChoice checkpoint;
  config::DataOptions data;
  config::ComputeOptions compute;
  int top_k = 5;
};

void bind(config::OptionSet& set, EvalCommand& options) {
  config::bind_checkpoint(set, options.checkpoint);
  config::bind_validation_data(set, options.data);
  config::bind_test_views(set, options.data);
  set.find("data-val")->required = true;
  set.add_shape("--image-shape", options.data.image,
                "size of the network's input; needed only for MXNet files, which do not store it");
  set.add_channels("--rgb-mean", options.data.augment.mean, "mean of each channel (default the checkpoint's)");
  set.add_channels("--rgb-std", options.data.augment.std,
                   "standard deviation of each channel (default the checkpoint's)");
  set.add("--batch-size", options.compute.batch_size, "N", "samples per batch", config::at_least(1));
  set.add("--top-k", options.top_k, "K", "K of the reported top-K accuracy", config::at_least(1));
  config::bind_device(set, options.compute, 1);
}

train::EvaluationReport evaluate(const EvalCommand& options, const train::Checkpoint& checkpoint) {
  const auto backend = config::choose_backend(options.compute);
  const backend::DType dtype = config::choose_dtype(options.compute, *backend);
  backend::CompileOptions compile = config::compile_options(options.compute, dtype, options.top_k);
  compile.training = false;
  data::LoaderOptions loading = validation_loader(options.data);
  config::load_for(*backend, loading);
  data::Loader loader(*options.data.validation, loading);
  const auto executable = backend->compile(checkpoint.graph, compile);
  executable->write_state(checkpoint.state);
  return train::evaluate(*executable, loader, options.compute.batch_size, config::test_views(options.data),
                         *comm::make_single());
}

std::vector<std::string> names_of(const train::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  const Json& preprocessing = checkpoint.job.preprocessing;
  const Json* classes = preprocessing.is_object() ? preprocessing.find("classes") : nullptr;
  if (!classes) return names;
  for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  return names;
}

void answer_report(const EvalCommand& options, const train::Checkpoint& checkpoint,
                   const train::EvaluationReport& report, Reporter& reporter) {
  const std::vector<std::string> names = names_of(checkpoint);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.eval/1"},
                                       {"network", checkpoint.graph.name},
                                       {"epoch", checkpoint.cursor.epoch},
                                       {"data", options.data.validation->string()},
                                       {"samples", report.samples},
                                       {"accuracy", report.accuracy},
                                       {"top_k", options.top_k},
                                       {"top_k_accuracy", report.top_k_accuracy},
                                       {"loss", report.loss},
                                       {"classes", Json(Json::Array(names.begin(), names.end()))},
                                       {"seconds", report.time.count()}}));
    return;
  }
  reporter.answer(fmt::format("accuracy={:.6f}\ntop_k_accuracy_{}={:.6f}\nloss={:.6f}\nsamples={}", report.accuracy,
                              options.top_k, report.top_k_accuracy, report.loss, report.samples));
}

// The same label that means something else would make the accuracy meaningless.
void compare_classes(const std::vector<std::string>& trained, const Path& records, Reporter& reporter) {
  if (trained.empty() || data::is_remote(records)) return;
  const std::vector<std::string> here = data::class_names(data::find_records(records.string()));
  if (here.empty() || trained == here) return;
  reporter.warn(fmt::format("{}: the classes are {}, those of the checkpoint are {}", records.string(),
                            join(here, ", "), join(trained, ", ")));
}

ExitCode act(const EvalCommand& given, const config::OptionSet& set, Reporter& reporter) {
  EvalCommand options = given;
  config::require_records(*options.data.validation);
  train::Checkpoint checkpoint = config::load(options.checkpoint, options.data.image);
  options.data.image = checkpoint.graph.input();
  options.data.classes = checkpoint.graph.classes();
  config::take_preprocessing(checkpoint.job.preprocessing, set, options.data);
  compare_classes(names_of(checkpoint), *options.data.validation, reporter);
  checkpoint.state.optimizer.clear();
  answer_report(options, checkpoint, evaluate(options, checkpoint), reporter);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_eval() {
  auto command = make_command<EvalCommand>("eval", "compute accuracy and loss of a checkpoint on record files", act);
  command->examples = {"dtrain eval m/r8 --load-epoch 1 --data-val d/cifar10_val.rec",
                       "dtrain eval m/r8-0001.safetensors --data-val d/cifar10_val.rec --json"};
  command->see_also = {"train", "inspect"};
  return command;
}

}  // namespace dtrain::cli
