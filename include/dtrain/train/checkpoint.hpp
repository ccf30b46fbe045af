// Checkpoints: PREFIX-0001.safetensors with PREFIX-0001.json, its manifest. Written whole or not at all. A prefix may
// be an s3:// URL: `store` reaches it; null: made from the environment when it is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/optimizer.hpp>
#include <dtrain/train/elastic_rate.hpp>
#include <dtrain/train/gradient_compression.hpp>
#include <dtrain/train/local_steps.hpp>

namespace dtrain::train {

using SharedStore = std::shared_ptr<net::ObjectStore>;

// Where in the run the state stands: `step` steps of `epoch` are applied. An epoch whose samples are all consumed is
// not over until it is closed: then the next one begins at step 0.
struct Cursor {
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t samples_seen = 0;  // of the whole run
  std::uint64_t position = 0;      // samples of this epoch's order that are consumed
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// What orders the samples of an epoch besides the seed: with another order, a run that goes on inside an epoch would
// see some samples twice and others never.
struct SampleOrder {
  int shuffle_block = 0;
  bool balanced = false;
  int repeats = 1;
  friend bool operator==(const SampleOrder&, const SampleOrder&) = default;
};

// All that a resumed job must agree on.
struct JobFacts {
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;  // of one epoch
  int global_batch = 0;       // samples of a step, or of an inner step, in the generation that saved
  // Batch that the schedule's rates are meant for, where a step has as many samples as it has workers times a number;
  // 0: every step of the run has global_batch samples.
  int rate_batch = 0;
  // Samples of one worker in a step, where workers have batches of their own; 0: they have none, or an earlier version
  // wrote the checkpoint.
  int worker_batch = 0;
  int logical_shards = 1;  // unused with rate_batch
  LocalSteps local{};
  GradientCompression compression{};  // with any(), the last optimizer slot is what it holds back
  std::uint64_t generation = 0;
  std::string dtype = "float32";
  nn::Optimizer optimizer;
  nn::Schedule schedule;
  Json preprocessing;                  // image shape, mean, std: what eval needs to see the same pixels
  std::optional<SampleOrder> order{};  // nullopt: a version of dtrain that did not write it
  // The records of an epoch, as they stand in their files; empty: such a version, or no records of dtrain.
  data::RecordOrder records{};
  // False: imported weights, which no run of dtrain has saved.
  bool is_of_run() const { return global_batch > 0; }
};

// What an accuracy was measured on.
struct ValidationSet {
  std::uint64_t samples = 0;  // 0: nothing is known
  data::RecordOrder records{};
  int views = 1;  // of each image: nn::image_views()
  friend bool operator==(const ValidationSet&, const ValidationSet&) = default;
};

// The best validation of the run so far, and what it was compared with.
struct BestEpoch {
  double accuracy = -1;     // below 0: there was none
  std::uint32_t epoch = 0;  // of the checkpoint, which is the number of complete epochs
  // The accuracies up to this epoch are not known, or not those of `data`: one of them may be better.
  std::uint32_t since = 0;
  // The checkpoint was saved before its epoch was evaluated, which is still to be done.
  bool is_due = false;
  std::optional<ValidationSet> data{};  // nullopt: a version of dtrain that did not write it, or no validation
  friend bool operator==(const BestEpoch&, const BestEpoch&) = default;
};

struct Checkpoint {
  nn::Graph graph;
  backend::ModelState state;
  Cursor cursor;
  JobFacts job;
  RateRamp ramp{};
  backend::StepMetrics epoch_totals{};  // sums over the epoch's steps so far
  std::optional<int> top_k{};           // TrainerOptions::top_k of these sums; nullopt: it is not known
  BestEpoch best{};                     // of a run with validation data
};

// Puts the average of the weights, where there is one, in their place, and drops what only training needs.
void use_average(Checkpoint& checkpoint);

// What stands in the names: PREFIX-0001 (end of the first epoch) and PREFIX-0001-step00000120 (inside the second).
struct CheckpointName {
  Path prefix;
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::string stem() const;  // without extension
};

// Returns the path of the .safetensors file. Tensors first, manifest last: a checkpoint exists once its manifest does.
Path save_checkpoint(const CheckpointName& name, const Checkpoint& checkpoint, const SharedStore& store = {});

// Writes into the manifest what was found of an epoch that was saved before it was evaluated; the tensors stay as they
// are. Nothing where its evaluation is not due, or no such manifest is there. Throws Error.
void save_evaluation(const CheckpointName& name, const BestEpoch& best, const SharedStore& store = {});

// Makes the folder of the prefix and writes and removes a small file there; behind a URL, lists what is there and
// writes and removes a small object. Throws Error where checkpoints could not be written.
void try_prefix(const Path& prefix, const SharedStore& store = {});

// Removes the files of a checkpoint, its manifest first, and with_mxnet the .params beside them. Throws Error.
void remove_checkpoint(const CheckpointName& name, const SharedStore& store = {}, bool with_mxnet = false);

// Whether the file is the manifest of a checkpoint, or its tensors beside it.
bool is_checkpoint_file(const Path& file, const SharedStore& store = {});

// Tensors of the prefix that have no manifest, and so are no checkpoint. A save that a crash cut off between its two
// files does not count. Of a folder only; none behind a URL.
std::vector<Path> orphaned_tensors(const Path& prefix);

// Verifies every tensor's hash; DataError names the first that differs. Where there is no manifest it reads
// PREFIX-symbol.json + PREFIX-0001.params as import_mxnet does (dtrain/train/export.hpp), which needs `image`.
Checkpoint load_checkpoint(const Path& prefix, std::uint32_t epoch, std::optional<nn::Shape> image = {},
                           std::optional<int> classes = {}, const SharedStore& store = {});
Checkpoint load_checkpoint_file(const Path& manifest, const SharedStore& store = {});

// Complete checkpoints of a prefix, newest first, by (epoch, step). Names only, content unverified.
std::vector<CheckpointName> list_checkpoints(const Path& prefix, const SharedStore& store = {});

// The checkpoint of the prefix that has this manifest, by its name alone; nullopt: the name is no such one.
std::optional<CheckpointName> name_of_manifest(const Path& prefix, const Path& manifest);

// That of the best validation accuracy, as the newest checkpoint of the prefix knows it; it may be removed. Throws
// DataError where there is none, or its run had no validation data.
CheckpointName best_checkpoint(const Path& prefix, const SharedStore& store = {});

// What there is of a prefix in MXNet's format: PREFIX-symbol.json, and PREFIX-0001.params by epoch, newest first.
struct MxnetExports {
  bool has_symbol = false;
  std::vector<std::uint32_t> epochs;
};
MxnetExports list_mxnet(const Path& prefix, const SharedStore& store = {});
// The newest epoch that they hold; nullopt: none.
std::optional<std::uint32_t> newest_mxnet_epoch(const Path& prefix, const SharedStore& store = {});

// What a run that replaces an earlier one writes or reads in MXNet's format.
struct MxnetUse {
  bool writes_params = false;
  bool needs_symbol = false;
};
// Removes the .params of epochs later than `first`, the first checkpoint of a run that replaces an earlier one:
// load_checkpoint() would take them, with a manifest or without. So too that of the same epoch, unless the run writes
// it, and with the last of them the symbol, unless the run needs it. Throws Error.
void remove_replaced_mxnet(const CheckpointName& first, MxnetUse use, const SharedStore& store = {});

// Hash of the parameters; and of parameters, statistics, optimizer, average and cursor: SHA-256 of lines "NAME
// [EXTENTS] SHA256", one for each tensor; for the state also "updates N" and "epoch N step N samples_seen N" and, in
// float16, "loss_scale VALUE good_steps N" (src/train/checkpoint_tensors.hpp).
std::string weights_sha256(const Checkpoint& checkpoint);
std::string state_sha256(const Checkpoint& checkpoint);

}  // namespace dtrain::train
