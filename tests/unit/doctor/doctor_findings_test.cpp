#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "doctor_findings.hpp"

namespace dtrain::doctor {
namespace {

MachineFacts good_machine() {
  MachineFacts facts;
  facts.processor = "Some Processor";
  facts.features = {"AVX2"};
  facts.usable_threads = facts.threads = 8;
  facts.memory_bytes = facts.free_memory_bytes = std::uint64_t{16} << 30;
  facts.descriptors = 4096;
  facts.disks = {
      {.use = "the job folder", .path = "/efs/job", .free_bytes = std::uint64_t{100} << 30, .free_files = 100000}};
  facts.ssh = {.agent_named = true, .agent_keys = 1, .key_files = 0};
  return facts;
}

// The worst finding about this, which says why and how to fix it where it is not fine.
Level level_of(const std::vector<Finding>& findings, const std::string& about) {
  Level worst = Level::fine;
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.level == Level::fine, finding.why.empty()) << finding.what;
    EXPECT_EQ(finding.level == Level::fine, finding.fix.empty()) << finding.what;
    if (finding.about == about) worst = std::max(worst, finding.level);
  }
  return worst;
}

TEST(DoctorFindings, AGoodMachineIsFine) {
  for (const Finding& finding : judge(good_machine())) EXPECT_EQ(finding.level, Level::fine) << finding.what;
}

TEST(DoctorFindings, APartThatCannotBeLookedAtIsAWarning) {
  MachineFacts facts = good_machine();
  facts.unread.push_back({"ssh", "~/.ssh: Permission denied"});
  EXPECT_EQ(level_of(judge(facts), "ssh"), Level::warning);
}

TEST(DoctorFindings, LittleMemoryIsAWarningAndLessAProblem) {
  MachineFacts facts = good_machine();
  facts.free_memory_bytes = 1 << 30;
  EXPECT_EQ(level_of(judge(facts), "memory"), Level::warning);
  facts.free_memory_bytes = 100 << 20;
  EXPECT_EQ(level_of(judge(facts), "memory"), Level::problem);
}

TEST(DoctorFindings, ADiskIsAProblemWhenFullOfBytesOrFilesOrClosed) {
  MachineFacts facts = good_machine();
  facts.disks[0].free_files = 10;
  EXPECT_EQ(level_of(judge(facts), "disk"), Level::problem);
  facts = good_machine();
  facts.disks[0].free_bytes = 1 << 20;
  EXPECT_EQ(level_of(judge(facts), "disk"), Level::problem);
  facts = good_machine();
  facts.disks[0].error = "Permission denied";
  EXPECT_EQ(level_of(judge(facts), "disk"), Level::problem);
}

TEST(DoctorFindings, OthersOnTheProcessorsAreAWarning) {
  MachineFacts facts = good_machine();
  facts.load = 12;
  EXPECT_EQ(level_of(judge(facts), "threads"), Level::warning);
  facts.load = 0;
  facts.usable_threads = 2;
  EXPECT_EQ(level_of(judge(facts), "threads"), Level::note);
}

TEST(DoctorFindings, AnAgentThatDoesNotAnswerIsAWarning) {
  MachineFacts facts = good_machine();
  facts.ssh.agent_keys = std::nullopt;
  EXPECT_EQ(level_of(judge(facts), "ssh"), Level::warning);
}

TEST(DoctorFindings, AGpuWithoutDriverOrLibrariesIsAProblem) {
  NvidiaFacts facts{.has_device = true, .driver = "", .found = {.problem = "no driver", .hint = "install one"}};
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu"), Level::problem);
  facts.driver = "580.95.05";
  facts.found = {.built = true,
                 .driver = "13.0",
                 .libraries = {{.name = "cuDNN", .version = "9.19.0"}},
                 .gpus = {{.name = "H100"}}};
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu"), Level::fine);
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu libraries"), Level::fine);
  facts.found.libraries[0].problem = "no cuDNN was found";
  facts.found.libraries[0].hint = "install it";
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu libraries"), Level::problem);
  facts.found.libraries = {{.name = "NCCL", .problem = "no NCCL was found", .hint = "install it"}};
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu libraries"), Level::note);
}

TEST(DoctorFindings, AGpuThatIsTooOldIsAProblemAndAWarningBesideANewerOne) {
  NvidiaFacts facts{.has_device = true,
                    .driver = "580.95.05",
                    .found = {.built = true, .driver = "13.0", .gpus = {{.name = "Tesla T4", .capability = "7.5"}}}};
  backend::judge_gpus(facts.found);
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu"), Level::problem);
  facts.found.gpus.push_back({.index = 1, .name = "NVIDIA L4", .capability = "8.9"});
  facts.found.problem = "";
  EXPECT_EQ(level_of(judge_gpus(facts), "gpu"), Level::warning);
}

ClusterVariables whole_cluster() {
  ClusterVariables facts;
  for (const std::string& name : cluster_variables()) facts.variables.insert_or_assign(name, std::string("x"));
  facts.variables["DEEPLEARNING_WORKERS_COUNT"] = "2";
  facts.variables["DEEPLEARNING_WORKER_GPU_COUNT"] = "4";
  facts.has_workers_file = facts.has_mount = true;
  facts.workers_in_file = 2;
  return facts;
}

TEST(DoctorFindings, TheVariablesOfAClusterAreAllThereAndAgree) {
  EXPECT_EQ(cluster_variables().size(), 7u);
  EXPECT_EQ(level_of(judge_cluster_variables(whole_cluster(), 4), "cluster"), Level::fine);
  EXPECT_EQ(level_of(judge_cluster_variables({}, 4), "cluster"), Level::fine) << "no cluster at all";
  ClusterVariables region;
  region.variables = {{"AWS_REGION", "eu-west-1"}};
  EXPECT_EQ(level_of(judge_cluster_variables(region, 4), "cluster"), Level::fine) << "any user of AWS sets it";
}

TEST(DoctorFindings, AMissingOrWrongVariableOfAClusterIsNamed) {
  ClusterVariables facts = whole_cluster();
  facts.variables.erase("AWS_REGION");
  const auto found = judge_cluster_variables(facts, 4);
  EXPECT_EQ(level_of(found, "cluster"), Level::warning);
  EXPECT_EQ(found[0].what, "not set: AWS_REGION");
  EXPECT_EQ(level_of(judge_cluster_variables(whole_cluster(), 1), "cluster"), Level::warning) << "number of GPUs";
  facts = whole_cluster();
  facts.variables["DEEPLEARNING_WORKER_GPU_COUNT"] = "four";
  EXPECT_EQ(level_of(judge_cluster_variables(facts, 4), "cluster"), Level::problem);
  facts = whole_cluster();
  facts.workers_in_file = 1;
  EXPECT_EQ(level_of(judge_cluster_variables(facts, 4), "cluster"), Level::problem);
  facts = whole_cluster();
  facts.has_mount = false;
  EXPECT_EQ(level_of(judge_cluster_variables(facts, 4), "cluster"), Level::problem);
}

TEST(DoctorFindings, AFileOrAMountOfAClusterThatCannotBeUsedIsNamedWithTheReason) {
  ClusterVariables facts = whole_cluster();
  facts.has_workers_file = facts.has_mount = false;
  facts.workers_error = "workers: line 2: 'a b' is no host";
  facts.mount_error = "Stale file handle";
  const auto found = judge_cluster_variables(facts, 4);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(level_of(found, "cluster"), Level::problem);
  EXPECT_EQ(found[0].what, "DEEPLEARNING_WORKERS_PATH: workers: line 2: 'a b' is no host");
  EXPECT_EQ(found[1].what, "EFS_MOUNT=x: Stale file handle");
}

TEST(DoctorFindings, AProgramThatIsNoBundleIsNamedWhereAwsIsAsked) {
  EXPECT_TRUE(judge_bundle({}).empty());
  EXPECT_EQ(level_of(judge_bundle({.asked = true}), "bundle"), Level::note);
  EXPECT_EQ(level_of(judge_bundle({.asked = true, .is_bundle = true}), "bundle"), Level::fine);
  MachineFacts facts = good_machine();
  facts.aws.asked = true;
  EXPECT_EQ(level_of(judge(facts), "bundle"), Level::note);
}

TEST(DoctorFindings, CredentialsThatAwsRefusesAreAProblemAndNoneAreNot) {
  EXPECT_TRUE(judge_aws({}).empty());
  AwsFacts facts{.asked = true};
  EXPECT_EQ(level_of(judge_aws(facts), "aws"), Level::note);
  facts = {.asked = true, .source = "environment", .account = "1", .name = "arn", .region = "eu-west-1"};
  EXPECT_EQ(level_of(judge_aws(facts), "aws"), Level::fine);
  facts.identity_error = "InvalidClientTokenId";
  facts.hint = "aws configure";
  EXPECT_EQ(level_of(judge_aws(facts), "aws"), Level::problem);
}

TEST(DoctorFindings, WhoAsksForAwsAloneNeedsCredentials) {
  MachineFacts facts = good_machine();
  facts.aws.asked = true;
  facts.unread = {{"gpu", "no answer"}};
  const std::vector<Finding> found = judge_identity(facts);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(level_of(found, "aws"), Level::problem);
  EXPECT_EQ(level_of(found, "bundle"), Level::note);
  facts.unread = {{"aws", "no answer"}};
  EXPECT_EQ(judge_identity(facts).size(), 3u);
}

TEST(DoctorFindings, AFindingSurvivesItsJson) {
  const Finding finding{Level::warning, "memory", "little", "slow", "buy"};
  EXPECT_EQ(finding_from_json(to_json(finding)), finding);
  Json strange = to_json(finding);
  strange["level"] = "odd";
  EXPECT_THROW(finding_from_json(strange), DataError);
}

TEST(DoctorFindings, TheOldNameOfFixIsRead) {
  const Json old =
      Json::object({{"level", "warning"}, {"about", "memory"}, {"what", "little"}, {"why", "slow"}, {"mend", "buy"}});
  EXPECT_EQ(finding_from_json(old).fix, "buy");
}

}  // namespace
}  // namespace dtrain::doctor
