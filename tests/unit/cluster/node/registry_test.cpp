#include <gtest/gtest.h>

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/compat_files.hpp>
#include <dtrain/cluster/registry.hpp>

namespace dtrain::cluster {
namespace {

NodeFacts node(const std::string& name, const std::string& address) {
  NodeFacts facts;
  facts.identity.instance_id = "i-" + name;
  facts.identity.address = address;
  facts.name = name;
  return facts;
}

TEST(Registry, KnowsANodeByAllOfItsNames) {
  Registry registry;
  registry.join(node("head", "10.0.0.1"), {});
  registry.join(node("w0001", "10.0.0.2"), {});
  for (const char* word : {"10.0.0.2", "w0001", "i-w0001", "deeplearning-worker2"}) {
    ASSERT_NE(registry.find(word), nullptr) << word;
    EXPECT_EQ(registry.find(word)->facts.name, "w0001");
  }
  EXPECT_EQ(registry.find("deeplearning-worker3"), nullptr);
}

TEST(Registry, ANodeThatComesAgainKeepsItsPlace) {
  Registry registry;
  registry.join(node("head", "10.0.0.1"), {});
  registry.join(node("w0001", "10.0.0.2"), {});
  registry.lose("10.0.0.1", {});
  EXPECT_FALSE(registry.nodes()[0].connected);
  registry.join(node("head", "10.0.0.1"), {});
  EXPECT_EQ(registry.addresses(), (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_TRUE(registry.nodes()[0].connected);
}

TEST(Registry, ForgetsAFailureOnceTheNodeCame) {
  Registry registry;
  registry.fail(*parse_failure("proof 10.0.0.2 prepare 7\nno data\nhere\n", "proof"));
  ASSERT_EQ(registry.failures().size(), 1U);
  EXPECT_EQ(registry.failures()[0].exit_code, 7);
  EXPECT_EQ(registry.failures()[0].log, "no data\nhere\n");
  registry.join(node("w0001", "10.0.0.2"), {});
  EXPECT_TRUE(registry.failures().empty());
}

TEST(Registry, TakesAReportOnlyFromWhoHasTheUserData) {
  for (const char* text : {"anything else", "10.0.0.2 prepare 7\n", "prove 10.0.0.2 prepare 7\n",
                           "proof 10.0.0.2\033[2J prepare 7\n", "proof 10.0.0.2 pre\033[2Jpare 7\n"}) {
    EXPECT_EQ(parse_failure(text, "proof"), std::nullopt) << text;
  }
  const auto long_one = parse_failure("proof 10.0.0.2 prepare 7\n" + std::string(60'000, 'x'), "proof");
  EXPECT_EQ(long_one->log.size(), 4096u);
}

TEST(Registry, RefusesFactsThatNoNodeCanReport) {
  const Json honest = Json::object({{"account", "111122223333"},
                                    {"region", "us-east-1"},
                                    {"instance_id", "i-1"},
                                    {"address", "10.0.0.2"},
                                    {"zone", "us-east-1a"},
                                    {"type", "c5.large"},
                                    {"name", "w0001"},
                                    {"launch_template", ""},
                                    {"gpus", 0}});
  EXPECT_EQ(node_facts_from_json(honest).name, "w0001");
  const std::pair<const char*, Json> lies[] = {{"address", "10.0.0.2 bank.example\n6.6.6.6"},
                                               {"address", "10.0.0"},
                                               {"name", "w1\033[2J"},
                                               {"instance_id", ""},
                                               {"launch_template", "$(reboot)"},
                                               {"type", std::string(200, 'x')},
                                               {"gpus", -1}};
  for (const auto& [key, value] : lies) {
    Json told = honest;
    told[key] = value;
    EXPECT_THROW(node_facts_from_json(told), DataError) << key;
  }
}

TEST(CompatFiles, AreNotMadeOfWhatIsNoAddress) {
  ClusterFacts honest;
  honest.head = "10.0.0.1";
  honest.workers = {"10.0.0.2"};
  Json facts = to_json(honest);
  EXPECT_EQ(cluster_facts_from_json(facts).workers.size(), 1u);
  facts["workers"] = Json::array({"10.0.0.2\n6.6.6.6 bank.example"});
  EXPECT_THROW(cluster_facts_from_json(facts), DataError);
}

TEST(CompatFiles, AreThoseOfTheTemplates) {
  const CompatFiles files = compat_files({.cluster = "demo",
                                          .region = "us-east-1",
                                          .head = "10.0.0.1",
                                          .workers = {"10.0.0.1", "10.0.0.2"},
                                          .shared_folder = "/myEFSvolume",
                                          .launch_template = "lt-1",
                                          .elastic_tag = "demo-aws-dl-cfn-elastic-worker",
                                          .gpus = 8});
  EXPECT_EQ(files.workers, "deeplearning-worker1\ndeeplearning-worker2\n");
  EXPECT_EQ(files.names,
            "10.0.0.1 deeplearning-master\n10.0.0.1 deeplearning-worker1\n10.0.0.2 deeplearning-worker2\n");
  EXPECT_EQ(files.profile,
            "export DEEPLEARNING_WORKERS_COUNT=2\nexport DEEPLEARNING_WORKERS_PATH=/opt/deeplearning/workers\n"
            "export DEEPLEARNING_WORKER_GPU_COUNT=8\nexport EFS_MOUNT=/myEFSvolume\nexport AWS_REGION=us-east-1\n"
            "export WORKER_LAUNCH_TEMPLATE_ID=lt-1\nexport ELASTIC_WORKER_TAG=demo-aws-dl-cfn-elastic-worker\n");
}

TEST(CompatFiles, LeaveTheRestOfTheHostsFileAlone) {
  const std::string once = with_cluster_names("127.0.0.1 localhost\n\n# mine\n", "10.0.0.1 deeplearning-master\n");
  const std::string twice = with_cluster_names(once + "10.9.9.9 other\n", "10.0.0.7 deeplearning-master\n");
  EXPECT_NE(twice.find("127.0.0.1 localhost\n\n# mine\n"), std::string::npos);
  EXPECT_NE(twice.find("10.9.9.9 other\n"), std::string::npos);
  EXPECT_NE(twice.find("10.0.0.7 deeplearning-master\n"), std::string::npos);
  EXPECT_EQ(twice.find("10.0.0.1 "), std::string::npos);
}

}  // namespace
}  // namespace dtrain::cluster
