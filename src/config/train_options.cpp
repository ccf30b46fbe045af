#include "train_options.hpp"

#include <fmt/format.h>

#include "gpu_choice.hpp"
#include "option_values.hpp"
#include "recipes.hpp"
#include "synthetic_data.hpp"

namespace dtrain::config {
namespace {

void bind_factors(OptionSet& set, nn::Optimizer& rule) {
  const Range range{.low = 0, .high = rule.kMostFactor, .low_is_out = true};
  set.add("--bias-lr-factor", rule.bias_lr_factor, "FACTOR",
          "multiplies the learning rate of biases and of batch norms' gammas and betas", range);
  set.add("--head-lr-factor", rule.head_lr_factor, "FACTOR",
          "multiplies the learning rate of the last layer's weight, which gives the logits", range);
}

void bind_muon(OptionSet& set, nn::Optimizer& rule) {
  nn::NewtonSchulz& iteration = rule.newton_schulz;
  set.add("--muon-steps", iteration.steps, "N", "muon: Newton-Schulz steps that make a weight's step orthogonal",
          between(1, iteration.kMostSteps));
  set.add_custom(
      "--muon-coefficients", "A,B,C", "muon: of a Newton-Schulz step, A x + B x^3 + C x^5",
      [&iteration](const std::string& text) {
        const auto [a, b, c] = three_numbers(text, between(-iteration.kMostCoefficient, iteration.kMostCoefficient));
        iteration.a = a, iteration.b = b, iteration.c = c;
      },
      [&iteration] { return fmt::format("{},{},{}", iteration.a, iteration.b, iteration.c); });
  set.add("--muon-rest-mom", rule.rest_momentum, "SHARE",
          "muon: momentum of what is no matrix between layers and moves as by nag", between(0, 1));
}

void bind_rule(OptionSet& set, TrainOptions& options) {
  set.group("Optimizer");
  set.add("--num-epochs", options.epochs, "N", "train until so many epochs are complete", at_least(0));
  set.add("--lr", options.schedule.base, "RATE", "learning rate", more_than(0));
  set.add("--lr-factor", options.schedule.factor, "FACTOR", "step: multiplies the rate at each of --lr-step-epochs",
          more_than(0));
  set.add_numbers("--lr-step-epochs", options.schedule.boundaries, "EPOCHS", "step: when the rate changes, as 30,60");
  set.add_custom(
      "--lr-schedule", "step|cosine|one-cycle", "how the rate changes; counts samples",
      [&options](const std::string& text) { options.schedule.kind = nn::parse_schedule(text); },
      [&options] { return std::string(nn::schedule_name(options.schedule.kind)); });
  set.add("--lr-rise", options.schedule.rise_share, "SHARE", "one-cycle: the part of the run in which the rate rises",
          between(0, 0.99));
  set.add("--lr-final", options.schedule.final_share, "SHARE", "cosine, one-cycle: the last rate as a share of --lr",
          between(0, 1));
  set.add("--warmup-epochs", options.schedule.warmup_epochs, "EPOCHS", "the rate rises linearly for so long",
          at_least(0));
  set.add_custom(
      "--optimizer", "sgd|nag|adam|adamw|muon", "the rule that moves the weights",
      [&options](const std::string& text) { options.optimizer.kind = nn::parse_optimizer(text); },
      [&options] { return std::string(nn::optimizer_name(options.optimizer.kind)); });
  set.add("--mom", options.optimizer.momentum, "SHARE", "momentum of sgd, nag and muon", between(0, 1));
  set.add("--wd", options.optimizer.weight_decay, "RATE", "weight decay", at_least(0));
  bind_factors(set, options.optimizer);
  bind_muon(set, options.optimizer);
}

void bind_checkpoints(OptionSet& set, TrainOptions& options) {
  set.group("Checkpoints");
  set.add("--model-prefix", options.model_prefix, "save to PATH-0001.safetensors with PATH-0001.json, and so on")
      .offers = Offers::checkpoints;
  set.add("--load-epoch", options.load_epoch, "N", "begin with the checkpoint that --model-prefix has of epoch N",
          at_least(0));
  set.add("--resume", options.resume, "go on from the newest undamaged checkpoint of --model-prefix");
  set.add("--checkpoint-every", options.checkpoint_every, "STEPS", "save also inside epochs; 0: only at their ends");
  set.add_choice("--checkpoint-format", options.checkpoint_format, {"safetensors", "mxnet"},
                 "mxnet: also PATH-symbol.json and PATH-0001.params");
}

void bind_reports(OptionSet& set, TrainOptions& options) {
  set.group("Reports");
  set.add("--disp-batches", options.disp_batches, "N", "steps between two log lines", at_least(1));
  set.add("--top-k", options.top_k, "K", "report how often the label is among the K best; 0: not", at_least(0));
  set.add("--tensorboard", options.tensorboard, "folder for TensorBoard's event files");
  set.add("--monitor", options.monitor, "N", "log the size of every tensor each N steps; 0: never", at_least(0));
  set.add_zero_or_one("--benchmark", options.benchmark, "train on synthetic images, to see the speed");
  set.add_zero_or_one("--test-io", options.test_io, "only load, to see the speed of reading");
}

}  // namespace

TrainOptions options_of_this_machine() {
  TrainOptions options;
  set_machine_defaults(options.compute);
  set_machine_defaults(options.data);
  return options;
}

void bind(OptionSet& set, TrainOptions& options) {
  set.group("Recipe");
  set.add_choice("--recipe", options.recipe, recipe_names(),
                 "defaults of MXNet's script of that name; speednet: CIFAR-10 in few epochs");
  set.presets("recipe", recipes());
  bind_network(set, options.network);
  bind_data(set, options.data);
  bind_test_views(set, options.data);
  bind_augmentation(set, options.data);
  bind_batch(set, options.compute);
  bind_rule(set, options);
  bind_checkpoints(set, options);
  bind_reports(set, options);
  bind_device(set, options.compute, kMostGpus);
  bind_training_hosts(set, options.job);
  bind_training_elastic(set, options.job);
}

ComputeOptions compute_of_worker(const TrainOptions& options) {
  ComputeOptions compute = options.compute;
  if (options.job.is_per_worker()) {
    compute.global_batch = batch_of_worker(compute);
    compute.logical_shards = 1;
  }
  return compute;
}

train::TrainerOptions trainer_options(const TrainOptions& options, backend::DType dtype) {
  train::TrainerOptions trainer;
  trainer.epochs = static_cast<std::uint32_t>(options.epochs);
  trainer.global_batch = options.compute.samples_per_step();
  trainer.logical_shards = options.compute.logical_shards;
  trainer.seed = options.compute.seed;
  nn::require_valid(options.optimizer);
  trainer.optimizer = options.optimizer;
  trainer.schedule = options.schedule;
  trainer.schedule.total_epochs = options.epochs;
  if (options.benchmark) trainer.schedule.base = kHarmlessRate;
  trainer.checkpoint_prefix = options.model_prefix;
  trainer.checkpoint_every_steps = options.checkpoint_every;
  trainer.checkpoint_format = options.checkpoint_format;
  trainer.evaluation_block = largest_shard(compute_of_worker(options));
  trainer.test_views = test_views(options.data, options.top_k);
  trainer.preprocessing = preprocessing_of(options.data);
  trainer.dtype = backend::dtype_name(dtype);
  trainer.gradient_dtype = backend::parse_dtype(options.job.gradient_dtype);
  trainer.elastic_batch = options.job.batch;
  if (options.job.is_per_worker()) trainer.worker_batch = batch_of_worker(options.compute);
  trainer.elastic_rate = options.job.rate;
  trainer.ramp_steps = options.job.ramp;
  return trainer;
}

}  // namespace dtrain::config
