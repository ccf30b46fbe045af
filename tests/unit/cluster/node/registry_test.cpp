#include <gtest/gtest.h>

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
  registry.fail(*parse_failure("10.0.0.2 prepare 7\nno data\nhere\n"));
  ASSERT_EQ(registry.failures().size(), 1U);
  EXPECT_EQ(registry.failures()[0].exit_code, 7);
  EXPECT_EQ(registry.failures()[0].log, "no data\nhere\n");
  registry.join(node("w0001", "10.0.0.2"), {});
  EXPECT_TRUE(registry.failures().empty());
  EXPECT_EQ(parse_failure("anything else"), std::nullopt);
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
