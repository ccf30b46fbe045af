#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>

#include "spec/train_run.hpp"

namespace dtrain::job {
namespace {

TrainRun some_run() {
  TrainRun run;
  config::OptionSet set;
  bind(set, run.options);
  run.options.schedule.base = 0.1234567890123;
  run.options.schedule.boundaries = {30, 60.5};
  run.options.optimizer.weight_decay = 1e-4f;
  run.options.data.augment.mean = {123.68f, 116.779f, 103.939f};
  run.options.compute.hosts = 3;
  run.options.compute.batch_size = 32;
  run.options.compute.logical_shards = 4;
  run.options.model_prefix = "m/with blank";
  run.options.job.elastic = true;
  run.sources.train = "d/x.rec";
  run.graph = nn::build_network({.name = "mlp", .image = {3, 28, 28}, .classes = 10});
  return run;
}

Json document_of(const TrainRun& run) { return to_json(config::make_run_spec(spec_of(run))); }

TrainRun read(const Json& document) {
  return run_of(std::get<config::TrainSpec>(config::run_spec_from_json(document).work));
}

TrainRun travelled(const TrainRun& sent) { return read(Json::parse(document_of(sent).dump(), "test")); }

TEST(TrainRun, TravelsWholeToWorkers) {
  const TrainRun sent = some_run();
  const TrainRun got = travelled(sent);
  EXPECT_EQ(got.options.schedule.base, sent.options.schedule.base);
  EXPECT_EQ(got.options.schedule.boundaries, sent.options.schedule.boundaries);
  EXPECT_EQ(got.options.optimizer.weight_decay, sent.options.optimizer.weight_decay);
  EXPECT_EQ(got.options.data.augment.mean, sent.options.data.augment.mean);
  EXPECT_EQ(got.options.model_prefix, sent.options.model_prefix);
  EXPECT_EQ(got.options.compute.samples_per_step(), 96);
  EXPECT_EQ(got.options.compute.logical_shards, 4);
  EXPECT_TRUE(got.options.job.elastic);
  EXPECT_EQ(got.sources.train, "d/x.rec");
  EXPECT_FALSE(got.sources.validation);
  EXPECT_EQ(nn::graph_to_json(got.graph), nn::graph_to_json(sent.graph));
}

TEST(TrainRun, UsesS3ForItsWeightsToo) {
  TrainRun run = some_run();
  EXPECT_FALSE(uses_s3(run));
  run.options.pretrained.file = "s3://b/w.safetensors#sha256=" + std::string(64, '0');
  EXPECT_TRUE(uses_s3(run));
  run.start_file = "m/with blank-0001.json";
  EXPECT_FALSE(uses_s3(run)) << "it resumes";
}

TEST(TrainRun, OfAnotherVersionIsRefused) {
  Json document = document_of(some_run());
  document["version"] = "0.0.0";
  EXPECT_THROW(read(document), DataError);
}

TEST(TrainRun, WithAnUnknownFieldIsRefused) {
  Json document = document_of(some_run());
  document["train"]["options"]["job"]["no_such_field"] = "1";
  EXPECT_THROW(read(document), DataError);
}

}  // namespace
}  // namespace dtrain::job
