#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/elastic/membership.hpp>

#include "bench/loader_speed.hpp"
#include "cli/command.hpp"
#include "cli/help.hpp"
#include "config/checks/idle_options.hpp"
#include "config/checks/schedule.hpp"
#include "config/checks/training_job.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "dry_run.hpp"
#include "job/coordinator/train_job.hpp"
#include "job/kubernetes/kubernetes_run.hpp"
#include "job/kubernetes/pod_command.hpp"
#include "job/queue/submission.hpp"
#include "job/report/run_records.hpp"
#include "job/report/run_watch.hpp"
#include "job/report/train_log.hpp"
#include "job/spec/finetune_start.hpp"
#include "job/spec/settle_run.hpp"
#include "job/spec/train_run.hpp"
#include "job/spec/train_start.hpp"
#include "trial_claims.hpp"

namespace dtrain::cli {
namespace {

void say_what_is_accepted(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter) {
  if (options.job.servers && !options.job.is_by_servers())
    reporter.note("-s has no effect: the workers add their gradients themselves, without servers");
  for (const std::string& line : config::idle_options(options, set)) reporter.warn(line);
  if (const std::string line = config::idle_without_job(options.job, set); !line.empty()) reporter.warn(line);
  const bool of_recipe = !set.chosen("recipe") && !set.chosen("num-epochs") && !set.chosen("lr");
  if (options.pretrained.file && !options.pretrained.finetune && of_recipe && !options.resume) {
    reporter.note(
        fmt::format("{} at rate {:g}, as --recipe {} has them; --finetune instead of --pretrained "
                    "chooses them for these pictures",
                    count_text(options.epochs, "epoch"), options.schedule.base, options.recipe));
  }
}

// How fast the batches up to number `batch` were loaded. Of the whole epoch: `is_result`.
void say_speed_of_loading(std::uint64_t batch, const bench::LoaderSpeed& speed, bool is_result, Reporter& reporter) {
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.test-io/1"},
                                       {"event", is_result ? "result" : "batch"},
                                       {"batch", batch},
                                       {"samples", speed.samples},
                                       {"seconds", speed.seconds},
                                       {"samples_per_second", speed.rate()}}));
  } else if (is_result) {
    reporter.answer(
        fmt::format("{} samples in {:.2f} s: {:.2f} samples/sec", speed.samples, speed.seconds, speed.rate()));
  } else {
    reporter.answer(fmt::format("Batch [{}]\tSpeed: {:.2f} samples/sec", batch, speed.rate()));
  }
}

ExitCode test_io(const config::TrainOptions& options, data::Loader& loader, Reporter& reporter) {
  using Clock = std::chrono::steady_clock;
  const auto every = static_cast<std::uint64_t>(options.disp_batches);
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto start = Clock::now();
  auto begin = start;
  bench::LoaderSpeed whole, part;
  std::uint64_t last = 0;
  bench::load_epoch(loader, 0, options.compute.samples_per_step(), [&](std::uint64_t batch, int count) {
    last = batch;
    whole.samples += static_cast<std::uint64_t>(count);
    part.samples += static_cast<std::uint64_t>(count);
    if ((batch + 1) % every != 0) return stop_signal() == 0;
    part.seconds = seconds_since(begin);
    say_speed_of_loading(batch, part, false, reporter);
    begin = Clock::now();
    part = {};
    return stop_signal() == 0;
  });
  if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped by a signal while loading");
  whole.seconds = seconds_since(start);
  say_speed_of_loading(last, whole, true, reporter);
  return ExitCode::ok;
}

// On a terminal with a newline first, behind ^C or a line that shows the progress.
constexpr const char* kStopsAndSaves =
    "\nStopping: this step is finished and a checkpoint saved; the signal again ends it at once, without one\n";
constexpr const char* kStops = "\nStopping after this step, which nothing saves; the signal again ends it at once\n";

// Whether --resume finds a checkpoint: this run saved one, or began with one of its own prefix.
class ResumableWatch final : public train::IgnoringObserver {
 public:
  explicit ResumableWatch(const job::TrainRun& run)
      : any_((run.options.resume || run.options.load_epoch) && run.start && run.start->job.is_of_run()) {}
  void on_checkpoint(const Path&) override { any_ = true; }
  bool any() const { return any_; }

 private:
  bool any_;
};

// A run without its last weights is no success, in whatever way it ended.
void refuse_loss(const train::TrainResult& result, const std::string& where, const ResumableWatch& resumable) {
  if (result.lost.empty()) return;
  const std::string first = result.lost_hint.empty() ? "" : result.lost_hint + (resumable.any() ? "; " : ", and ");
  throw Error(where + result.lost, first + (resumable.any() ? "--resume goes on from the last good checkpoint"
                                                            : "run the same command again"));
}

// A stop that nothing can resume from becomes the signal that asked for it.
void throw_if_stopped(const train::TrainResult& result, const ResumableWatch& resumable) {
  if (result.ended != train::TrainResult::Ended::stopped) return;
  const std::string where =
      fmt::format("stopped by a signal at epoch {} step {}", result.cursor.epoch, result.cursor.step);
  refuse_loss(result, where + "; ", resumable);
  if (result.saved) throw Stopped(where + ", checkpoint saved", "the same command with --resume continues from here");
  throw Interrupted(stop_signal(), where + ", nothing saved", "--model-prefix saves checkpoints");
}

// An error that comes with a signal is of less interest than the signal.
train::TrainResult train_here(const job::TrainRun& run, data::Loader& training, data::Loader* validation,
                              backend::Executable& executable, train::Observer& observer) {
  const auto membership = elastic::make_fixed_membership(comm::make_single());
  train::TrainerOptions options = config::trainer_options(run.options, run.dtype);
  options.store = run.remote.store;
  options.same_bits = job::has_same_bits(run);
  try {
    return train::train(run.graph, executable, training, validation, *membership, options,
                        run.start ? &*run.start : nullptr, observer);
  } catch (const Error& error) {
    if (stop_signal() == 0) throw;
    throw Interrupted(stop_signal(), error.what(), error.hint());
  }
}

// The folder that the user chose for the records, else one beside the checkpoints of this machine. $EFS_MOUNT names a
// folder of jobs, which trainings without workers share.
std::optional<job::JobFolder> record_folder(const config::TrainOptions& options, const config::OptionSet& set) {
  const config::Option* folder = set.find("job-dir");
  if (set.chosen("job-dir") && folder->origin != folder->legacy_variable) return job::JobFolder{options.job.folder};
  const bool saves_here = options.model_prefix && !data::is_remote(*options.model_prefix) && options.epochs > 0;
  return saves_here ? std::optional(job::folder_of_prefix(*options.model_prefix)) : std::nullopt;
}

ExitCode train_alone(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter) {
  if (options.test_io && options.dry_run) {
    throw UsageError("--test-io and --dry-run exclude each other", "give one of them");
  }
  watch_stop_signals();
  const job::TrainRun run = job::settle_run(options, set, 1, reporter);
  const std::optional<job::JobFolder> folder = record_folder(run.options, set);
  if (options.dry_run) try_claims(run, folder);
  const bool measures = options.test_io || options.dry_run;
  const job::DataWait wait = measures ? job::DataWait{} : job::wait_alone();
  const auto training = training_loader(run, wait);
  if (options.test_io) return test_io(options, *training, reporter);
  const auto validation = validation_loader(run, wait);

  if (options.dry_run) {
    dry_run(run, *training, validation.get(), reporter);
    return ExitCode::ok;
  }

  job::RunWatch watch(reporter, run);
  std::optional<job::RunRecords> records;
  if (folder) {
    watch.observers().add(records.emplace(*folder, run.options, reporter));
    job::keep_configuration(*folder, set, run.options, reporter);
  }
  ResumableWatch resumable(run);
  watch.observers().add(resumable);
  watch.begin(1);
  const auto executable = job::compile(run);
  std::optional<job::TensorLog> tensors;
  if (options.monitor > 0) watch.observers().add(tensors.emplace(reporter, options.monitor, run.graph, *executable));

  train::TrainResult result;
  if (!reporter.options().quiet) {
    const char* const words = run.options.model_prefix ? kStopsAndSaves : kStops;
    answer_first_signal(reporter.draws_progress() ? words : words + 1);
  }
  try {
    result = train_here(run, *training, validation.get(), *executable, watch.observers());
  } catch (const Error& error) {
    if (records) records->fail(error);
    throw;
  }
  const std::optional<train::Diverged> broken = train::divergence_at_end(result, job::has_same_bits(run));
  if (records) broken ? records->fail(*broken) : records->end(result);
  for (const data::Loader* loader : {training.get(), validation.get()}) {
    if (loader && loader->bad_records() > 0) watch.observers().on_warning(loader->bad_records_warning());
  }
  throw_if_stopped(result, resumable);
  refuse_loss(result, count_text(result.cursor.epoch, "epoch") + " trained, but ", resumable);
  watch.end(result);
  if (broken) throw train::Diverged(*broken);
  return ExitCode::ok;
}

ExitCode train_anywhere(const config::TrainOptions& given, const config::OptionSet& set, Reporter& reporter) {
  config::TrainOptions options = given;
  job::drop_hosts_of_node(set, options, reporter);
  const int workers = config::workers_of_host(options.compute);
  options.job.slots = workers > 1 ? workers : 0;  // one leaves it to the list of hosts
  job::settle_queue(options.job, set);
  config::check_training_job(options.job, set);
  job::let_stronger_start_decide(set, options);
  if (options.job.is_for_queue()) return job::submit_training(options, set, reporter);
  say_what_is_accepted(options, set, reporter);
  return options.job.is_job() ? job::train_in_job(options, set, reporter) : train_alone(options, set, reporter);
}

// A copy of the user's options, in which more is chosen once these are known.
struct OwnOptions {
  OwnOptions(const config::TrainOptions& given, const config::OptionSet& of_given) {
    config::bind(set, options);
    options = given;
    set.take_sources(of_given);
  }
  config::TrainOptions options;
  config::OptionSet set;
};

ExitCode fine_tune(const config::TrainOptions& given, const config::OptionSet& set, Reporter& reporter) {
  OwnOptions own(given, set);
  job::choose_finetuning(own.options, own.set, reporter);
  return train_anywhere(own.options, own.set, reporter);
}

// In the pods the values of files are flags, which are not fitted to the run any more; and what is wrong with them
// shows here before a pod is made. With --finetune the epochs are only known where the pictures are, in the pods, which
// fit the warm-up of a file to them.
void settle_schedule_for_pods(OwnOptions& own, Reporter& reporter) {
  if (own.options.pretrained.finetune) return config::mark_warmup_of_file(own.set);
  if (const std::string fitted = config::settle_schedule(own.set, own.options); !fitted.empty()) reporter.note(fitted);
  config::check_schedule(own.options);
}

ExitCode train_on_kubernetes(const config::TrainOptions& given, const config::OptionSet& set, Reporter& reporter) {
  config::check_training_job(given.job, set);
  OwnOptions own(given, set);
  job::drop_weaker_starts(own.set, own.options);
  job::refuse_other_starts(own.options, "--launcher kubernetes");
  settle_schedule_for_pods(own, reporter);
  if (!given.model_prefix && given.epochs > 0)
    reporter.warn("without --model-prefix a pod of the coordinator that is replaced begins from the start");
  return job::run_on_kubernetes(own.options.job, job::pod_job_folder(own.options.job, own.set),
                                job::pod_command("train", own.options.job, own.set, {}), reporter);
}

ExitCode act(const config::TrainOptions& options, const config::OptionSet& set, Reporter& reporter) {
  if (!options.job.kubernetes.print) watch_for_lost_reader();  // what prints alone has nothing to save
  if (options.job.is_on_kubernetes()) return train_on_kubernetes(options, set, reporter);
  return options.pretrained.finetune ? fine_tune(options, set, reporter) : train_anywhere(options, set, reporter);
}

}  // namespace

std::unique_ptr<Command> make_train() {
  auto command = make_command<config::TrainOptions>(
      "train", "train a model on this machine or on several hosts; hosts can join and leave", act);
  command->first_options = {"network",  "num-layers", "finetune",    "data-train",
                            "data-val", "num-epochs", "model-prefix"};
  command->examples = {
      first_commands().at(1),
      "dtrain train --recipe mnist --model-prefix m/mnist",
      "dtrain train --finetune resnet50.safetensors --data-train p_train --data-val p_val --model-prefix m/p",
      "dtrain train --num-layers 20 --dtype auto --logical-shards 4 --model-prefix m/r20 --resume",
      "dtrain train --num-layers 50 --gpus 0,1,2,3 --batch-size 512 --dtype auto --model-prefix m/r50",
      "dtrain train -n 2 -H hosts --launcher local --elastic --elastic-boundary step --model-prefix m/e --job-dir job "
      "--detach"};
  command->see_also = {"hosts list", "events", "stop", "eval", "inspect", "data prepare", "bench train"};
  return command;
}

}  // namespace dtrain::cli
