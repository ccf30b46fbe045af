// What travels of a job keeps every value, and says which field it does not know.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config/run_spec.hpp"

namespace dtrain::config {
namespace {

RunSpec travelled(const RunSpec& spec) { return run_spec_from_json(Json::parse(to_json(spec).dump(), "test")); }

// A struct and its copy have the same JSON form only if every field that is written is read.
TEST(RunSpec, IsTheSameAfterItTravelled) {
  TrainSpec train{
      .options = options_of_this_machine(), .graph = nn::build_network({.name = "mlp"}), .data = {}, .start = "x"};
  train.prefix_token = "t";
  train.options.compute.seed = 7;
  train.options.compute.threads += 1;
  train.options.data.augment.max_random_scale = 1.1f;
  train.options.data.cache_decoded_gib = 0.5;
  train.options.job.hostfile = "hosts";
  train.options.job.batch = train::ElasticBatch::per_worker;
  train.options.job.heartbeat_timeout = Seconds(0.25);
  train.options.job.environment = {"A=1", "B=a b"};
  train.options.optimizer.kind = nn::OptimizerKind::adamw;
  train.options.schedule.kind = nn::ScheduleKind::cosine;
  const RunSpec sent = make_run_spec(train);
  const RunSpec got = travelled(sent);
  EXPECT_EQ(to_json(got), to_json(sent));
  EXPECT_EQ(std::get<TrainSpec>(got.work).prefix_token, "t");
  const TrainOptions& options = std::get<TrainSpec>(got.work).options;
  EXPECT_EQ(options.job.hostfile, "hosts");
  EXPECT_EQ(options.job.batch, train::ElasticBatch::per_worker);
  EXPECT_EQ(options.compute.threads, train.options.compute.threads);
  EXPECT_EQ(options.data.augment.max_random_scale, 1.1f);
  EXPECT_EQ(options.data.cache_decoded_gib, 0.5) << "a worker that joins makes the same pixels";
  EXPECT_EQ(options.optimizer.kind, nn::OptimizerKind::adamw);
}

TEST(RunSpec, OfAProgramTravelsToo) {
  LaunchOptions options;
  options.words = {"python3", "a b.py"};
  options.max_restarts = 4;
  options.job.elastic = true;
  const RunSpec got = travelled(make_run_spec(ProgramSpec{.options = options, .program = program_of(options)}));
  const auto& program = std::get<ProgramSpec>(got.work);
  EXPECT_EQ(program.options.words, options.words);
  EXPECT_EQ(program.options.max_restarts, 4);
  EXPECT_EQ(program.program.command, options.words);
  EXPECT_TRUE(got.job().elastic);
}

// Hosts have other numbers of processors.
TEST(RunSpec, LeavesThreadsToTheMachineUnlessTheyWereChosen) {
  const RunSpec spec =
      make_run_spec(TrainSpec{.options = options_of_this_machine(), .graph = {}, .data = {}, .start = {}});
  EXPECT_TRUE(to_json(spec).at("train").at("threads").at("compute").is_null());
}

TEST(RunSpec, NamesAFieldOfAnotherVersion) {
  Json document = to_json(make_run_spec(ProgramSpec{}));
  document["launch"]["options"]["job"]["colour"] = "red";
  try {
    run_spec_from_json(document);
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "the job's options.job.colour: this dtrain knows no such field");
  }
}

TEST(RunSpec, OfAnotherSchemaIsRefused) {
  Json document = to_json(make_run_spec(ProgramSpec{}));
  document["schema"] = "dtrain.job/1";
  EXPECT_THROW(run_spec_from_json(document), DataError);
}

}  // namespace
}  // namespace dtrain::config
