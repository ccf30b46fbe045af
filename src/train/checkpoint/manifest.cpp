#include "manifest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/nn/graph_json.hpp>

namespace dtrain::train {
namespace {

constexpr std::string_view kSchema = "dtrain.checkpoint/1";
constexpr std::string_view kAnyVersion = kSchema.substr(0, kSchema.find('/') + 1);
constexpr std::string_view kOwnHash = "manifest_sha256";

// The hash of everything else in the document, without white space.
std::string hash_of_document(const Json& document) {
  Json others = Json::object();
  for (const auto& [key, value] : document.as_object()) {
    if (key != kOwnHash) others[key] = value;
  }
  return sha256_hex(bytes_of(others.dump()));
}

Json tensor_json(const TensorHash& tensor) {
  const Json::Array shape(tensor.shape.begin(), tensor.shape.end());
  return Json::object({{"name", tensor.name}, {"shape", Json(shape)}, {"sha256", tensor.sha256}});
}

TensorHash tensor_from(const Json& json) {
  TensorHash tensor{json.at("name").as_string(), {}, json.at("sha256").as_string()};
  for (const Json& extent : json.at("shape").as_array()) tensor.shape.push_back(extent.as_integer());
  return tensor;
}

std::uint64_t count_from(const Json& document, std::string_view key) {
  return static_cast<std::uint64_t>(document.at(key).as_integer());
}

Json to_json(const SampleOrder& order) {
  return Json::object({{"shuffle_block", order.shuffle_block},
                       {"balanced_sampler", order.balanced},
                       {"repeated_augment", order.repeats}});
}

SampleOrder order_from(const Json& json) {
  return {.shuffle_block = static_cast<int>(json.at("shuffle_block").as_integer()),
          .balanced = json.at("balanced_sampler").as_bool(),
          .repeats = static_cast<int>(json.at("repeated_augment").as_integer())};
}

Json records_json(const data::RecordOrder& records) {
  return Json::object({{"sizes_sha256", records.sizes}, {"contents_sha256", records.contents}});
}

data::RecordOrder records_from(const Json& json) {
  return {.sizes = json.at("sizes_sha256").as_string(), .contents = json.at("contents_sha256").as_string()};
}

Json validation_json(const ValidationSet& set) {
  Json json = Json::object({{"samples", set.samples}, {"test_views", set.views}});
  if (!set.records.sizes.empty()) json["record_order"] = records_json(set.records);
  return json;
}

ValidationSet validation_from(const Json& json) {
  ValidationSet set{.samples = count_from(json, "samples"),
                    .views = static_cast<int>(json.at("test_views").as_integer())};
  if (const Json* records = json.find("record_order")) set.records = records_from(*records);
  return set;
}

void add_job(Json& document, const JobFacts& job) {
  document["seed"] = job.seed;
  document["samples"] = job.samples;
  document["global_batch"] = job.global_batch;
  if (job.rate_batch > 0) document["rate_batch"] = job.rate_batch;
  if (job.worker_batch > 0) document["worker_batch"] = job.worker_batch;
  document["logical_shards"] = job.logical_shards;
  if (job.local.any()) document["local_steps"] = to_json(job.local);
  if (job.compression.any()) document["gradient_compression"] = compression_text(job.compression);
  document["generation"] = job.generation;
  document["dtype"] = job.dtype;
  document["optimizer"] = nn::to_json(job.optimizer);
  document["schedule"] = nn::to_json(job.schedule);
  document["preprocessing"] = job.preprocessing;
  if (job.order) document["sample_order"] = to_json(*job.order);
  if (!job.records.sizes.empty()) document["record_order"] = records_json(job.records);
}

JobFacts job_from(const Json& document) {
  JobFacts job;
  job.seed = count_from(document, "seed");
  job.samples = count_from(document, "samples");
  job.global_batch = static_cast<int>(document.at("global_batch").as_integer());
  if (const Json* rate_batch = document.find("rate_batch")) job.rate_batch = static_cast<int>(rate_batch->as_integer());
  if (const Json* batch = document.find("worker_batch")) job.worker_batch = static_cast<int>(batch->as_integer());
  job.logical_shards = static_cast<int>(document.at("logical_shards").as_integer());
  if (const Json* local = document.find("local_steps")) job.local = local_steps_from_json(*local);
  if (const Json* text = document.find("gradient_compression")) job.compression = compression_from(text->as_string());
  job.generation = count_from(document, "generation");
  job.dtype = document.at("dtype").as_string();
  job.optimizer = nn::optimizer_from_json(document.at("optimizer"));
  job.schedule = nn::schedule_from_json(document.at("schedule"));
  job.preprocessing = document.at("preprocessing");
  if (const Json* order = document.find("sample_order")) job.order = order_from(*order);
  if (const Json* records = document.find("record_order")) job.records = records_from(*records);
  return job;
}

// Manifests that are older than the position have only steps of one size.
Cursor cursor_from(const Json& document, const JobFacts& job) {
  Cursor cursor{static_cast<std::uint32_t>(document.at("epoch").as_integer()), count_from(document, "step"),
                count_from(document, "samples_seen")};
  const bool known = document.find("position") != nullptr;
  cursor.position = known ? count_from(document, "position")
                          : std::min(job.samples, cursor.step * static_cast<std::uint64_t>(job.global_batch));
  return cursor;
}

void check_document(const Json& document, std::string_view source) {
  const Json* schema = document.is_object() ? document.find("schema") : nullptr;
  if (!schema || !schema->is_string() || !schema->as_string().starts_with(kAnyVersion)) {
    throw DataError(fmt::format("{}: not the manifest of a checkpoint", source),
                    "name the .json file beside a checkpoint's .safetensors file; `dtrain train --network` takes the "
                    "graph of a network");
  }
  if (schema->as_string() != kSchema) {
    throw DataError(fmt::format("{}: schema '{}' is not {}", source, schema->as_string(), kSchema),
                    "a newer dtrain may have written it: use that one");
  }
  if (document.at(kOwnHash).as_string() != hash_of_document(document)) {
    throw DataError(fmt::format("{}: damaged: its content does not match its hash", source),
                    "use an older checkpoint, or setting 'resume', which finds the newest undamaged one");
  }
}

Manifest manifest_from(const Json& document, std::string_view source) {
  Manifest manifest;
  manifest.checkpoint.job = job_from(document);
  manifest.checkpoint.cursor = cursor_from(document, manifest.checkpoint.job);
  if (const Json* totals = document.find("epoch_totals")) manifest.checkpoint.epoch_totals = totals_from(*totals);
  if (const Json* k = document.find("epoch_top_k")) manifest.checkpoint.top_k = static_cast<int>(k->as_integer());
  if (const Json* ramp = document.find("ramp")) manifest.checkpoint.ramp = ramp_from_json(*ramp);
  if (const Json* best = document.find("best")) manifest.checkpoint.best = best_from(*best);
  manifest.updates = count_from(document, "updates");
  if (const Json* scale = document.find("loss_scale")) manifest.loss_scale = loss_scale_from(*scale);
  manifest.data = {count_from(document.at("data"), "size"), document.at("data").at("header_sha256").as_string()};
  for (const Json& tensor : document.at("tensors").as_array()) manifest.tensors.push_back(tensor_from(tensor));
  manifest.checkpoint.graph = nn::graph_from_json(document.at("graph"), source);
  return manifest;
}

}  // namespace

Json totals_json(const backend::StepMetrics& totals) {
  return Json::array({totals.loss_sum, totals.correct, totals.top_k_correct, totals.count});
}

backend::StepMetrics totals_from(const Json& json) {
  const Json::Array& numbers = json.as_array();
  if (numbers.size() != 4) throw DataError("the totals of an epoch are four numbers");
  return {numbers[0].as_number(), numbers[1].as_number(), numbers[2].as_number(), numbers[3].as_number()};
}

Json to_json(const BestEpoch& best) {
  Json json = Json::object({{"accuracy", best.accuracy}, {"epoch", std::uint64_t{best.epoch}}});
  if (best.since > 0) json["since"] = std::uint64_t{best.since};
  if (best.is_due) json["evaluation_due"] = true;
  if (best.data) json["data"] = validation_json(*best.data);
  return json;
}

BestEpoch best_from(const Json& json) {
  BestEpoch best{.accuracy = json.at("accuracy").as_number(),
                 .epoch = static_cast<std::uint32_t>(count_from(json, "epoch"))};
  if (json.find("since")) best.since = static_cast<std::uint32_t>(count_from(json, "since"));
  if (const Json* due = json.find("evaluation_due")) best.is_due = due->as_bool();
  if (const Json* data = json.find("data")) best.data = validation_from(*data);
  return best;
}

Json to_json(const backend::LossScale& scale) {
  return Json::object({{"value", scale.value}, {"good_steps", std::uint64_t{scale.good_steps}}});
}

backend::LossScale loss_scale_from(const Json& json) {
  return {static_cast<float>(json.at("value").as_number()), static_cast<std::uint32_t>(count_from(json, "good_steps"))};
}

std::string write_manifest(const Checkpoint& checkpoint, const DataFile& data, std::span<const TensorHash> tensors) {
  Json document = Json::object({{"schema", kSchema}});
  document["epoch"] = checkpoint.cursor.epoch;
  document["step"] = checkpoint.cursor.step;
  document["samples_seen"] = checkpoint.cursor.samples_seen;
  document["position"] = checkpoint.cursor.position;
  document["epoch_totals"] = totals_json(checkpoint.epoch_totals);
  if (checkpoint.top_k) document["epoch_top_k"] = *checkpoint.top_k;
  document["ramp"] = to_json(checkpoint.ramp);
  if (checkpoint.best != BestEpoch{}) document["best"] = to_json(checkpoint.best);
  document["updates"] = checkpoint.state.updates;
  const std::optional<backend::LossScale> loss_scale = loss_scale_of(checkpoint);
  if (loss_scale) document["loss_scale"] = to_json(*loss_scale);
  document["weights_sha256"] = hash_of_weights(tensors.first(checkpoint.graph.parameters.size()));
  document["state_sha256"] = hash_of_state(tensors, checkpoint.state.updates, checkpoint.cursor, loss_scale);
  add_job(document, checkpoint.job);
  document["data"] = Json::object({{"size", data.size}, {"header_sha256", data.header_sha256}});
  Json::Array list;
  for (const TensorHash& tensor : tensors) list.push_back(tensor_json(tensor));
  document["tensors"] = Json(std::move(list));
  document["graph"] = nn::graph_to_json(checkpoint.graph);
  document[kOwnHash] = hash_of_document(document);
  return document.dump(1) + "\n";
}

std::optional<std::string> with_evaluation(std::string_view text, std::string_view source, const BestEpoch& best) {
  Json document = Json::parse(text, source);
  check_document(document, source);
  const Json* const saved = document.find("best");
  if (!saved || !best_from(*saved).is_due) return std::nullopt;
  document["best"] = to_json(best);
  document[kOwnHash] = hash_of_document(document);
  return document.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text, std::string_view source) {
  const Json document = Json::parse(text, source);
  check_document(document, source);
  try {
    return manifest_from(document, source);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", source, error.what()), error.hint());
  }
}

}  // namespace dtrain::train
