// The training run of a worker: generations of workers, epochs of steps, evaluation, checkpoints; the caller
// watches through an observer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/data/mix.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/train/checkpoint.hpp>
#include <dtrain/train/coco_ap.hpp>
#include <dtrain/train/elastic_rate.hpp>
#include <dtrain/train/gradient_compression.hpp>
#include <dtrain/train/local_steps.hpp>
#include <dtrain/train/parameter_servers.hpp>
#include <dtrain/train/plan.hpp>

namespace dtrain::train {

// A part of a detector's loss.
struct LossPart {
  std::string name;
  double value = 0;
};

// Instead of a top-K accuracy where the options ask for none: events leave it out.
inline constexpr double kNotAskedFor = std::numeric_limits<double>::quiet_NaN();

// While a detector trains there is no accuracy: NaN.
struct StepReport {
  std::uint32_t epoch = 0;
  std::uint64_t step = 0, steps = 0;                             // step counts from 0 inside the epoch
  int samples = 0;                                               // of this step
  std::uint64_t samples_seen = 0;                                // of the whole run, this step included
  double loss = 0, accuracy = 0, top_k_accuracy = kNotAskedFor;  // of this step
  double learning_rate = 0;
  // Of the mean loss, before anything is cut; NaN: it was not measured in this step.
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  std::chrono::duration<double> time{};  // of this step
  std::vector<LossPart> parts = {};      // of the loss
};

struct EpochReport {
  std::uint32_t epoch = 0;
  double loss = 0, accuracy = 0, top_k_accuracy = kNotAskedFor;  // over the epoch's training samples
  std::chrono::duration<double> time{};
};

struct EvaluationReport {
  std::uint32_t epoch = 0;
  std::uint64_t samples = 0;
  // Of a detector: NaN, and the average precision of its boxes.
  double loss = 0, accuracy = 0;
  int top_k = 0;  // 0: no K is known, and no top-K accuracy
  double top_k_accuracy = kNotAskedFor;
  std::chrono::duration<double> time{};   // as this rank spent it, loading and waiting for the others included
  std::optional<CocoFigures> boxes = {};  // of a detector
  std::optional<CocoFigures> masks = {};  // of a detector that finds masks
  // Not among what is reported to observers.
  std::vector<CocoFigures> boxes_by_class = {}, masks_by_class = {};
};

// Ranks have other shards than before, from the next step on.
struct ShardsReport {
  std::vector<int> shards;  // [rank] how many
};

// Called from the training thread; must be quick. Among several ranks only rank 0 calls it,
// and only once all ranks have what is reported: of a step when the next one is reduced, of an epoch when it is closed.
// A new rank 0 may report again what the rank 0 before it reported last: OnlyNews (train/report_json.hpp) drops
// that.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_first_batch(const data::Batch& batch) = 0;
  virtual void on_step(const StepReport& report) = 0;
  virtual void on_epoch(const EpochReport& report) = 0;
  virtual void on_evaluation(const EvaluationReport& report) = 0;
  virtual void on_checkpoint(const Path& file) = 0;
  virtual void on_shards(const ShardsReport& report) = 0;
  virtual void on_note(const std::string& text) = 0;  // what went as the options say, and is worth knowing
  virtual void on_warning(const std::string& text) = 0;
  // The run ends, and its last weights are saved nowhere: what is lost and why.
  virtual void on_lost(const std::string& text) = 0;
};

// For observers of a few kinds of reports: ignores all of them. An observer that passes reports on derives from
// Observer, so that a new kind cannot get lost in it.
class IgnoringObserver : public Observer {
 public:
  void on_first_batch(const data::Batch&) override {}
  void on_step(const StepReport&) override {}
  void on_epoch(const EpochReport&) override {}
  void on_evaluation(const EvaluationReport&) override {}
  void on_checkpoint(const Path&) override {}
  void on_shards(const ShardsReport&) override {}
  void on_note(const std::string&) override {}
  void on_warning(const std::string&) override {}
  void on_lost(const std::string&) override {}
};

// Which samples this worker consumed, for train/ledger.hpp.
struct LedgerOptions {
  Path folder;
  std::string worker;  // names the file; no two workers of a job share it
};

// The run is known to have saved a checkpoint that this worker cannot read.
struct LostStart {
  std::uint32_t epoch = 0;  // where that checkpoint stands
  std::uint64_t step = 0;
  std::string reason;  // why it cannot be read
};

// What a worker can begin with.
struct RunStart {
  const Checkpoint* checkpoint = nullptr;  // null: fresh weights
  std::optional<LostStart> lost{};
};

enum class CheckpointFormat {
  safetensors,
  mxnet,  // at the end of an epoch, MXNet's files beside those of safetensors
};
inline constexpr EnumName<CheckpointFormat> kCheckpointFormatNames[] = {{CheckpointFormat::safetensors, "safetensors"},
                                                                        {CheckpointFormat::mxnet, "mxnet"}};

struct TrainerOptions {
  std::uint32_t epochs = 1;  // train until so many epochs are complete
  int global_batch = 128;    // samples of a step; with per_worker the batch that the schedule's rates are meant for
  int logical_shards = 1;    // V; with per_worker unused
  // With any(), a step is a round, of global_batch samples in local.steps inner steps. The executable is a
  // LocalExecutable then, the batch is fixed, and the optimizer keeps no average.
  LocalSteps local{};
  // With any(), parameters live on servers during an epoch. Asynchronous workers have batches of worker_batch samples,
  // in one shard. The batch is fixed then, and there are no rounds.
  ParameterServers servers{};
  std::uint64_t seed = 0;
  nn::Initializer initializer = nn::Initializer::standard;
  nn::Optimizer optimizer;
  nn::Schedule schedule;
  std::optional<Path> checkpoint_prefix;
  std::uint64_t checkpoint_every_steps = 0;  // 0: only at the end of epochs
  CheckpointFormat checkpoint_format = CheckpointFormat::safetensors;
  int keep_checkpoints = 0;  // the newest so many stay; 0: all
  bool keep_best = false;    // and with them that of the best validation
  bool resumes = false;      // the run is that of the checkpoint it begins with, whose epochs count
  // The first checkpoint that a process saves removes those that come later in the order of names: an earlier run left
  // them, and a later command would take them for this run's newest.
  bool replaces_later = false;
  bool needs_symbol = false;  // the network is of a file, which PREFIX-symbol.json may be: then it stays
  // The run ends when so many epochs in a row had no better validation accuracy than the best one; 0: it does not.
  std::uint32_t early_stop = 0;
  data::MixOptions mix;
  // How long the end of a run waits for room to save its last weights.
  std::chrono::milliseconds save_patience{10'000};
  SharedStore store{};  // for a prefix that is a URL, as in train/checkpoint.hpp
  int top_k = 0;        // of the accuracies that are reported beside the first guess; 0: none
  int evaluation_block = 128;
  int test_views = 1;  // of each image in an evaluation: nn::image_views()
  Json preprocessing;
  std::optional<SampleOrder> order{};  // of the training loader, for the manifests
  backend::DType dtype = backend::DType::float32;

  // What gradients are rounded to in each shard and after each addition, and travel as: float32 or bfloat16.
  backend::DType gradient_dtype = backend::DType::float32;
  // How gradients of float32 travel. With any(), neither local steps nor float16.
  GradientCompression compression{};
  ElasticBatch elastic_batch = ElasticBatch::fixed_global;
  int worker_batch = 0;  // per_worker, and asynchronous: samples of one worker in a step
  ElasticRate elastic_rate = ElasticRate::smooth;
  int ramp_steps = 8;  // smooth: how many steps the rate takes to follow the batch
  std::optional<LedgerOptions> ledger;
  // Set: this worker needs the state of another rank, or a start of another that stands there at least.
  std::optional<LostStart> lost_start;
  // Looks again for what this worker can begin with, on the thread of train(), where no rank has the state of the run:
  // others may have trained and saved since it looked first. nullopt: nothing is new. The checkpoint stays as it is
  // until the next call, which may also end that of train(). Empty: that of train() is the only one.
  std::function<std::optional<RunStart>()> find_start{};
  // A step that is computed again, here or elsewhere, has the same bits. Else equal cursors do not mean equal states.
  bool same_bits = true;
  // Compute every size of shard once before the membership hears that the model is ready, and report the hash of the
  // result to it, if that is the same bits everywhere.
  bool warm_up = false;
  // How long the ranks watch their speeds before shards move from slow to fast ones; 0: they stay. They move on the CPU
  // and with a fixed batch only. Same bits.
  std::chrono::milliseconds shard_window{2'000};
  int lanes = 1;  // shards that this worker computes at the same time
};

struct TrainResult {
  enum class Ended {
    done,     // options.epochs are complete
    removed,  // this worker is no member any more; the job goes on without it
    stopped,  // the job ended before
  };
  Ended ended = Ended::done;
  Cursor cursor;
  std::optional<EvaluationReport> evaluation;  // the last one
  bool saved = false;                          // this worker's checkpoint of `cursor` is on disk
  std::string lost;                            // what could not be saved and why; empty: nothing was lost
  std::string lost_hint;                       // what to do about the cause; may be empty
  std::string reason;                          // removed, stopped: for the user; may be empty
};

// The loss is not finite, or a gradient that compression held back is not. Where steps have the same bits, the step
// ends like this again, here and elsewhere: a queue and a scheduler need not try.
class Diverged : public Error {
 public:
  Diverged(const std::string& what, std::string hint, bool same_bits)
      : Error(what, std::move(hint)), same_bits_(same_bits) {}
  ExitCode exit_code() const override { return same_bits_ ? ExitCode::no_progress : ExitCode::failed; }

 private:
  bool same_bits_;
};

// The error of a complete run whose weights give no finite loss on the validation data; nullopt: any other run.
std::optional<Diverged> divergence_at_end(const TrainResult& result, bool same_bits);

// Runs until options.epochs are complete or no evaluation was better for long (early_stop), or the membership says that
// this worker or the whole job ends. Starts from `start` or fresh weights of options.seed, or from what
// options.find_start finds, unless other ranks are further: then their state is received. `validation` may be null. An
// evaluation that was due at the start comes first.
// Throws DataError where no rank has the state of a run that is known to have trained (lost_start). Throws PeerLost
// where the membership does not survive one, Diverged (naming step and learning rate; nothing of that step is saved),
// and Error when this rank's state differs from that of the others. A checkpoint that cannot be written is a warning:
// training goes on, the last good one stays and the save is tried again. Checkpoints are written beside the steps; the
// last one is written before train() returns, or else `lost` says why not.
TrainResult train(const nn::Graph& graph, backend::Executable& executable, data::Loader& training,
                  data::Loader* validation, elastic::Membership& membership, const TrainerOptions& options,
                  const Checkpoint* start, Observer& observer);

// Gets the blocks that this rank evaluates, in their order, with their logits [n, classes], on the calling thread.
using LogitsSink = std::function<void(const backend::HostBatch& samples, std::span<const float> logits)>;

// All ranks together; the result, but for its time, is the same on all. `graph` is the executable's.
EvaluationReport evaluate(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader, int block,
                          int views, comm::Communicator& comm, const LogitsSink& logits = {});

}  // namespace dtrain::train
