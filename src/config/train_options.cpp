#include "train_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/optimizer_ranges.hpp>

#include "checkpoint_choice.hpp"
#include "exchange/local_steps_options.hpp"
#include "exchange/synchronized_norms.hpp"
#include "gpu/gpu_choice.hpp"
#include "gpu/step_memory.hpp"
#include "mxnet_options.hpp"
#include "option_values.hpp"
#include "recipes.hpp"
#include "resizing/aspect_groups.hpp"
#include "resizing/progressive_options.hpp"
#include "synthetic_data.hpp"

namespace dtrain::config {
namespace {

constexpr std::int64_t kMostKept = 1'000'000'000;

void bind_factors(OptionSet& set, nn::Optimizer& rule) {
  const std::string decay = "; the weight decay of sgd, nag, adamw, muon, adagrad and lars is without it";
  set.add("--bias-lr-factor", rule.bias_lr_factor, "FACTOR",
          "factor on the learning rate of biases and of the gammas and betas of norms" + decay,
          nn::kOptimizerRanges.lr_factor);
  set.add(
      "--head-lr-factor", rule.head_lr_factor, "FACTOR",
      "factor on the learning rate of the last layer's weight, which computes the logits, or of a detector's weights "
      "with outputs for each class" +
          decay,
      nn::kOptimizerRanges.lr_factor);
  set.add("--layer-decay", rule.layer_decay, "FACTOR",
          "for sgd, nag and adamw, factor on the learning rate of each block of layers relative to the block after it, "
          "so that the first layers learn least; all heads of a detector are its last block, and its feature pyramid "
          "is the one before",
          nn::kOptimizerRanges.layer_decay);
}

void bind_muon(OptionSet& set, nn::Optimizer& rule) {
  nn::NewtonSchulz& iteration = rule.newton_schulz;
  set.add("--muon-steps", iteration.steps, "N",
          "for muon, number of Newton-Schulz iterations that orthogonalize an update", nn::kOptimizerRanges.muon_steps);
  set.add_custom(
         "--muon-coefficients", "A,B,C", "for muon, coefficients of a Newton-Schulz iteration A x + B x^3 + C x^5",
         [&iteration](const std::string& text) {
           const auto [a, b, c] = three_numbers(text, nn::kOptimizerRanges.muon_coefficient);
           iteration.a = a, iteration.b = b, iteration.c = c;
         },
         [&iteration] { return fmt::format("{},{},{}", iteration.a, iteration.b, iteration.c); })
      .comma_list = true;
  set.add("--muon-rest-mom", rule.rest_momentum, "SHARE",
          "for muon, momentum of the parameters that nag updates: all but the weight matrices between layers",
          nn::kOptimizerRanges.rest_momentum);
}

void bind_cuts(OptionSet& set, nn::Optimizer& rule) {
  set.add("--clip-norm", rule.clip_norm, "X",
          "scale the gradients down where the norm of all of them together is above X; 0 turns it off",
          nn::kOptimizerRanges.clip);
  set.add("--clip-gradient", rule.clip_gradient, "X",
          "cut each element of the gradients to the range from -X to X, after --clip-norm; 0 turns it off",
          nn::kOptimizerRanges.clip);
}

void bind_average(OptionSet& set, nn::Optimizer& rule) {
  set.add("--ema", rule.average, "DECAY",
          "keep an exponential moving average of the weights, of which each step replaces the share 1 - DECAY; "
          "evaluations, eval, predict and export use it. 0 keeps none; --resume keeps the checkpoint's",
          nn::kOptimizerRanges.average);
  set.add("--ema-warmup", rule.average_warms_up,
          "for --ema, begin with small decays: 1 - T^(-2/3) at step T until that reaches DECAY");
}

void bind_accumulation(OptionSet& set, ComputeOptions& compute) {
  set.add("--accumulate", compute.accumulate, "N",
          "accumulate the gradients of N batches before each update, with the memory of one: a step takes N times "
          "--batch-size samples, in N times as many logical shards; a power of two",
          between(1, 65536));
}

void bind_warmup(OptionSet& set, TrainOptions& options) {
  nn::Schedule& schedule = options.schedule;
  set.add("--warmup-epochs", schedule.warmup_epochs, "EPOCHS",
          "number of epochs at the start during which the learning rate rises to --lr",
          nn::kScheduleRanges.warmup_epochs);
  add_choice(set, "--warmup-strategy", schedule.warmup, nn::kWarmUpNames,
             "how the learning rate rises during --warmup-epochs: linear with the share of them that is over, power2 "
             "with its square, sqrt with its square root; constant stays at --warmup-lr and then jumps");
  set.add("--warmup-lr", schedule.warmup_start, "RATE",
          "learning rate at which --warmup-epochs begin, at most --lr. Default: --lr / 25",
          nn::kScheduleRanges.warmup_start);
  Option& of_file = set.add("--warmup-of-file", options.has_warmup_of_file,
                            "--warmup-epochs comes from a file, and is fitted to the number of epochs");
  of_file.hidden = of_file.flag_only = true;
}

void bind_initializer(OptionSet& set, nn::Initializer& initializer) {
  add_choice(set, "--initializer", initializer, nn::kInitializerNames,
             "initial values of the weights that no file gives. default: as the network says, mostly Gaussian with "
             "variance 2 / fan_in. The others set all of them, like MXNet's Xavier(), MSRAPrelu(), Normal() with "
             "deviation 0.01, Uniform() up to 0.07, One() or Zero()");
}

void bind_rule(OptionSet& set, TrainOptions& options) {
  set.group("Optimizer");
  set.add("--num-epochs", options.epochs, "N", "number of epochs to train", at_least(0));
  set.add("--early-stop", options.early_stop, "N",
          "end the run after N epochs in a row without a better validation accuracy; 0 trains all epochs", at_least(0));
  set.add("--lr", options.schedule.base, "RATE", "initial learning rate", nn::kScheduleRanges.base);
  set.add("--lr-factor", options.schedule.factor, "FACTOR",
          "for the step schedule, factor on the learning rate at each epoch of --lr-step-epochs",
          nn::kScheduleRanges.factor);
  set.add_ascending("--lr-step-epochs", options.schedule.boundaries, "EPOCHS",
                    "for the step schedule, epochs at which the learning rate changes, such as 30,60");
  set.add_custom(
      "--lr-schedule", "step|cosine|one-cycle|poly", "schedule of the learning rate, as a function of the samples seen",
      [&options](const std::string& text) { options.schedule.kind = nn::parse_schedule(text); },
      [&options] { return std::string(nn::schedule_name(options.schedule.kind)); });
  set.add("--lr-rise", options.schedule.rise_share, "SHARE",
          "for one-cycle, share of the run during which the learning rate rises", nn::kScheduleRanges.rise_share);
  set.add("--lr-final", options.schedule.final_share, "SHARE",
          "for cosine, one-cycle and poly, final learning rate as a share of --lr", nn::kScheduleRanges.final_share);
  set.add("--lr-cycles", options.schedule.cycles, "N",
          "for cosine, number of cycles of equal length, each of which falls from --lr again",
          nn::kScheduleRanges.cycles);
  set.add("--lr-power", options.schedule.power, "POWER", "for poly, exponent of the share of the run that is left",
          nn::kScheduleRanges.power);
  bind_warmup(set, options);
  set.add_custom(
      "--optimizer", "sgd|nag|adam|adamw|muon|rmsprop|adagrad|lamb|lars|adamax|nadam|adadelta|signum|ftml",
      "optimizer that updates the weights",
      [&options](const std::string& text) {
        options.optimizer = nn::with_kind(options.optimizer, nn::parse_optimizer(text));
      },
      [&options] { return std::string(nn::optimizer_name(options.optimizer.kind)); });
  set.add("--mom", options.optimizer.momentum, "SHARE", "momentum, for sgd, nag, muon, lars and signum",
          nn::kOptimizerRanges.momentum);
  set.add("--wd", options.optimizer.weight_decay, "RATE",
          "weight decay of weights and of the gammas of norms, with lamb of weights alone; biases and betas have none",
          nn::kOptimizerRanges.weight_decay);
  bind_cuts(set, options.optimizer);
  bind_average(set, options.optimizer);
  bind_factors(set, options.optimizer);
  bind_muon(set, options.optimizer);
}

void bind_loss(OptionSet& set, LossOptions& loss) {
  set.group("Loss");
  set.add("--bce-loss", loss.bce,
          "compute the loss of each class by itself: the mean of their binary cross-entropies, instead of softmax "
          "cross-entropy");
  set.add("--bce-target-thresh", loss.target_threshold, "SHARE",
          "for --bce-loss, take a target above SHARE, such as that of a mixed image, as 1 and any other as 0; 1 takes "
          "targets as they are",
          between(0, 1));
  set.add("--focal-gamma", loss.focal_gamma, "GAMMA",
          "reduce the weight of classes that the network already predicts well: multiply the loss of a class by the "
          "share that it misses, to the power of GAMMA. 0 turns it off",
          between(0, 100));
  set.add("--class-weights", loss.class_weights, "FILE|balanced",
          "weights of the classes in the loss: balanced for the inverse of their number of images, with a mean of 1 "
          "over all images, or a CSV file of lines CLASS,WEIGHT with names or labels; classes not named weigh 1");
}

void bind_mix(OptionSet& set, TrainOptions& options) {
  data::MixOptions& mix = options.mix;
  set.group("Augmentation");
  set.add("--repeated-augment", options.data.repeated_augment, "N",
          "number of times in a row that an image comes, each time augmented anew; an epoch keeps its length, with "
          "fewer different images",
          data::kLoaderRanges.repeats);
  set.add("--mixup", mix.mixup, "ALPHA",
          "blend each image, and its label, with another one of its logical shard; the share comes from Beta(ALPHA, "
          "ALPHA). 0 turns it off",
          data::kMixRange);
  set.add(
      "--cutmix", mix.cutmix, "ALPHA",
      "put a box of another image of the logical shard into each image; the share of its area comes from Beta(ALPHA, "
      "ALPHA). With --mixup, each shard and step uses one of the two, with equal chance. 0 turns it off",
      data::kMixRange);
}

// "best", a number, or both with a comma between them; "last" is 1.
void set_kept(const std::string& text, TrainOptions& options) {
  std::optional<int> number;
  bool best = false;
  for (const std::string& word : split(text, ',')) {
    const std::string_view part = trim(word);
    if (part == "best" && !best) {
      best = true;
      continue;
    }
    const auto count = part == "last" ? std::optional<std::int64_t>(1) : parse_integer(part);
    if (number || !count || *count < 0 || *count > kMostKept) {
      throw UsageError(fmt::format("must be a number from 0 on, best, or both as in best,3; not '{}'", text));
    }
    number = static_cast<int>(*count);
  }
  options.keep_best = best;
  options.keep_checkpoints = number.value_or(1);
}

std::string kept(const TrainOptions& options) {
  return fmt::format("{}{}", options.keep_best ? "best," : "", options.keep_checkpoints);
}

void bind_checkpoints(OptionSet& set, TrainOptions& options) {
  set.group("Checkpoints");
  refuse_folders(set.add("--model-prefix", options.model_prefix,
                         "prefix of the checkpoints: PATH-0001.safetensors and PATH-0001.json after epoch 1, and so "
                         "on. All hosts of a job, and the machine that runs the command, must see the same folder "
                         "there; an s3:// URL is the same for all"))
      .offers = Offers::checkpoints;
  bind_epoch(set, options.load_epoch,
             "start from the checkpoint of --model-prefix after epoch N, or after the one of the highest validation "
             "accuracy");
  set.add("--resume", options.resume,
          "continue from the newest undamaged checkpoint of --model-prefix. A job does not resume where "
          "the checkpoint that it saved last is missing");
  set.add("--force", options.force,
          "train even if --model-prefix already has checkpoints; once the run has saved its first one, those later "
          "than it are removed")
      .not_from_project = true;
  set.add_custom(
         "--keep-checkpoints", "[best,]N",
         "keep the newest N checkpoints of --model-prefix and remove older ones; 0 keeps all. best also keeps the one "
         "with the highest validation accuracy",
         [&options](const std::string& text) { set_kept(text, options); }, [&options] { return kept(options); })
      .comma_list = true;
  set.add("--checkpoint-every", options.checkpoint_every, "STEPS",
          "number of steps between checkpoints within an epoch; 0 saves only at the end of epochs");
  add_choice(set, "--checkpoint-format", options.checkpoint_format, train::kCheckpointFormatNames,
             "format of checkpoints; mxnet also writes PATH-symbol.json and PATH-0001.params");
}

// MXNet writes the same number under two names.
std::vector<std::string> loss_metrics(const std::string& text) {
  std::vector<std::string> metrics;
  for (const std::string& word : split(text, ',')) {
    const std::string_view name = trim(word);
    if (name.empty()) continue;
    const bool is_nll = name == "nll" || name == "nll_loss" || name == "nll-loss";
    if (!is_nll && name != "ce" && name != "cross-entropy")
      throw UsageError(fmt::format("must be ce, nll or ce,nll, not '{}'", text));
    metrics.emplace_back(is_nll ? "nll-loss" : "cross-entropy");
  }
  return metrics;
}

void bind_reports(OptionSet& set, TrainOptions& options) {
  set.group("Reports");
  set.add("--disp-batches", options.disp_batches, "N", "number of steps between two log lines", at_least(1));
  set.add("--top-k", options.top_k, "K", "report top-K accuracy; 0 for none", at_least(0));
  set.add_custom(
      "--loss", "ce|nll|ce,nll",
      "also log the loss, as MXNet's metric cross-entropy, nll-loss or both; one that is trained otherwise, as by "
      "--bce-loss, --focal-gamma, --class-weights or --label-smoothing, is logged as Train-loss",
      [&options](const std::string& text) { options.losses = loss_metrics(text); },
      [&options] { return join(options.losses, ","); });
  set.add_path_or_none("--tensorboard", options.tensorboard, "folder for TensorBoard event files");
  set.add("--monitor", options.monitor, "N",
          "log the root mean square of every parameter tensor every N steps; 0 for never", at_least(0));
  set.add_zero_or_one("--benchmark", options.benchmark, "1 trains on synthetic images, to measure the speed");
  set.add_zero_or_one("--test-io", options.test_io, "1 only loads the data, to measure the speed of loading");
  set.add("--dry-run", options.dry_run,
          "check data, network and disk, train a few steps without keeping them, and print what the run will need");
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
                 "set of defaults: those of MXNet's script of that name, speednet for CIFAR-10 in few epochs, or "
                 "detection, the default of detectors");
  set.presets("recipe", "network", recipes());
  bind_network(set, options.network);
  bind_synchronized_norms(set, options);
  bind_pretrained(set, options.pretrained);
  bind_initializer(set, options.initializer);
  bind_data(set, options.data);
  bind_aspect_groups(set, options.data);
  bind_test_views(set, options.data);
  bind_augmentation(set, options.data);
  bind_mix(set, options);
  bind_progressive(set, options.resizing);
  bind_batch(set, options.compute);
  bind_accumulation(set, options.compute);
  bind_loss(set, options.loss);
  bind_rule(set, options);
  bind_checkpoints(set, options);
  bind_reports(set, options);
  bind_device(set, options.compute, kMostGpus);
  bind_training_hosts(set, options.job);
  bind_training_elastic(set, options.job);
  bind_local_steps(set, options.local);
  bind_mxnet(set);
}

int samples_between_exchanges(const TrainOptions& options) {
  return options.compute.samples_per_step() * options.local.steps;
}

ComputeOptions compute_of_worker(const TrainOptions& options) {
  ComputeOptions compute = options.compute;
  if (options.job.has_own_batches()) {
    compute.global_batch = batch_of_worker(compute);
    compute.logical_shards = 1;
  }
  return compute;
}

// Images are mixed, and the batches of a round are cut into those of its steps, on the host and as floats; the noise of
// an erased rectangle is made of floats.
bool trains_on_bytes(const TrainOptions& options, const backend::Backend& backend) {
  const bool floats = options.mix.any() || options.local.any() || options.data.augment.random_erasing > 0;
  return backend.batches().as_bytes && !floats;
}

backend::CompileOptions compile_options(const TrainOptions& options, const backend::Backend& backend,
                                        backend::DType dtype) {
  backend::CompileOptions compile = compile_options(compute_of_worker(options), dtype, options.top_k);
  compile.optimizer = options.optimizer.kind;
  compile.average = options.optimizer.average > 0;
  compile.layer_decay = options.optimizer.layer_decay != 1;
  compile.batches_as_bytes = trains_on_bytes(options, backend);
  if (options.local.any()) return compile;  // of an inner step, which is one shard
  const MemoryOfStep memory = memory_of_step(options);
  compile.shards = memory.shards;
  compile.waiting_sums = memory.waiting_sums;
  return compile;
}

train::TrainerOptions trainer_options(const TrainOptions& options, backend::DType dtype) {
  train::TrainerOptions trainer;
  trainer.epochs = static_cast<std::uint32_t>(options.epochs);
  trainer.global_batch = samples_between_exchanges(options);
  trainer.logical_shards = options.compute.logical_shards;
  trainer.seed = options.compute.seed;
  trainer.initializer = options.initializer;
  trainer.optimizer = options.optimizer;
  trainer.schedule = options.schedule;
  trainer.schedule.total_epochs = options.epochs;
  if (options.benchmark) trainer.schedule.base = kHarmlessRate;
  trainer.checkpoint_prefix = options.model_prefix;
  trainer.checkpoint_every_steps = options.checkpoint_every;
  trainer.checkpoint_format = options.checkpoint_format;
  trainer.keep_checkpoints = options.keep_checkpoints;
  trainer.keep_best = options.keep_best;
  trainer.resumes = options.resume;
  trainer.replaces_later = options.force;
  trainer.needs_symbol = options.network.is_file();
  trainer.early_stop = static_cast<std::uint32_t>(options.early_stop);
  trainer.local = options.local;
  if (options.job.is_by_servers()) {
    trainer.servers.servers = options.job.servers.value_or(1);
    trainer.servers.max_staleness = options.job.max_staleness;
    trainer.servers.threads = options.compute.threads;
  }
  trainer.mix = options.mix;
  trainer.evaluation_block = largest_shard(compute_of_worker(options));
  trainer.test_views = test_views(options.data);
  trainer.top_k = options.top_k;
  trainer.preprocessing = preprocessing_of(options.data);
  trainer.order = {.shuffle_block = options.data.shuffle_block,
                   .balanced = options.data.balanced_sampler,
                   .repeats = options.data.repeated_augment};
  trainer.dtype = dtype;
  trainer.gradient_dtype = options.job.gradient_dtype;
  trainer.compression = options.job.compression;
  if (!options.job.move_shards) trainer.shard_window = {};
  trainer.lanes = compile_options(compute_of_worker(options), dtype, 0).lanes;
  trainer.elastic_batch = options.job.batch;
  if (options.job.has_own_batches()) trainer.worker_batch = batch_of_worker(options.compute);
  trainer.elastic_rate = options.job.rate;
  trainer.ramp_steps = options.job.ramp;
  return trainer;
}

}  // namespace dtrain::config
