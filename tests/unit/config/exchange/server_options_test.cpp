#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config/exchange/server_options.hpp"

namespace dtrain::config {
namespace {

class ServerOptions : public testing::Test {
 protected:
  ServerOptions() { bind(set_, options_); }

  void choose(std::string_view name, const std::string& text) {
    Option& option = *set_.find(name);
    option.set(text);
    option.source = Source::flag;
  }
  void choose_servers(int workers = 4) {
    choose("kv-store", "dist_async");
    choose("device", "cpu");
    options_.job.hosts = workers;
  }
  std::string refusal(backend::DType dtype = backend::DType::float32, int workers = 4) {
    try {
      settle_servers(options_, dtype, set_, workers);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  TrainOptions options_ = options_of_this_machine();
  OptionSet set_;
};

TEST_F(ServerOptions, GivesEachWorkerAServerByDefault) {
  choose_servers();
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(options_.job.servers, 4);
  EXPECT_EQ(trainer_options(options_, backend::DType::float32).servers.servers, 4);
  EXPECT_EQ(trainer_options(options_, backend::DType::float32).worker_batch, 128);
}

TEST_F(ServerOptions, TakesStepsOfAllWorkersWithoutStaleness) {
  choose_servers();
  choose("max-staleness", "0");
  choose("global-batch", "64");
  choose("logical-shards", "4");
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(trainer_options(options_, backend::DType::float32).servers.is_synchronous());
  EXPECT_EQ(servers_line(options_.job), "4 parameter servers; all workers take each step together");
}

TEST_F(ServerOptions, SaysHowFarWorkersAreAhead) {
  choose_servers();
  choose("num-servers", "1");
  choose("max-staleness", "1");
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(servers_line(options_.job),
            "1 parameter server; each worker is at most 1 step ahead of the slowest one, so two runs do not end in the "
            "same bits");
}

TEST_F(ServerOptions, RefusesAStalenessWithoutServers) {
  choose("max-staleness", "3");
  EXPECT_EQ(refusal(), "--max-staleness: without --kv-store dist_async no worker is ahead of another");
  EXPECT_THROW(choose("max-staleness", "-1"), UsageError);
}

struct Refused {
  std::vector<std::pair<const char*, const char*>> options;
  const char* says;
};

class RefusedWithServers : public ServerOptions, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedWithServers, InOneSentence) {
  choose_servers();
  for (const auto& [name, text] : GetParam().options) choose(name, text);
  EXPECT_TRUE(refusal().starts_with(std::string("--kv-store dist_async with ") + GetParam().says)) << refusal();
}

INSTANTIATE_TEST_SUITE_P(ServerOptions, RefusedWithServers,
                         testing::Values(Refused{{{"local-steps", "3"}}, "--local-steps: "},
                                         Refused{{{"num-servers", "5"}}, "-s 5: "},
                                         Refused{{{"num-servers", "0"}}, "-s 0: "},
                                         Refused{{{"global-batch", "64"}}, "--global-batch: "},
                                         Refused{{{"logical-shards", "8"}}, "--logical-shards: "},
                                         Refused{{{"accumulate", "2"}}, "--accumulate: "},
                                         Refused{{{"gradient-dtype", "bfloat16"}}, "--gradient-dtype bfloat16: "},
                                         Refused{{{"gradient-compression", "2bit"}}, "--gradient-compression: "},
                                         Refused{{{"transport", "gloo"}}, "--transport gloo or nccl: "},
                                         Refused{{{"clip-norm", "1"}}, "--clip-norm and 4 servers: "},
                                         Refused{{{"gpus", "0"}, {"device", "cuda"}}, "GPUs: "},
                                         Refused{{{"num-workers", "1"}}, "one process: "}));

TEST_F(ServerOptions, RefusesALossScaleForEachWorker) {
  choose_servers();
  EXPECT_TRUE(refusal(backend::DType::float16).starts_with("--kv-store dist_async with --dtype float16: "));
}

}  // namespace
}  // namespace dtrain::config
