#include <gtest/gtest.h>

#include <dtrain/launcher/kubectl.hpp>
#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::launcher {
namespace {

KubernetesJob small_job() {
  return {.name = "cats",
          .space = {},
          .image = "dtrain:1",
          .command = {"train", "--lr", "0.1"},
          .environment = {},
          .workers = 2,
          .cpus = 1.5,
          .memory = "4Gi",
          .gpus = 0,
          .claim = {},
          .storage = "9Gi",
          .storage_class = {},
          .mount = "/volume",
          .job_folder = "/volume/jobs/cats"};
}

std::vector<std::string> kinds(const KubernetesJob& job) {
  std::vector<std::string> kinds;
  for (const Json& object : kubernetes_objects(job)) kinds.push_back(object.at("kind").as_string());
  return kinds;
}

Json of_kind(const KubernetesJob& job, const std::string& kind) {
  for (const Json& object : kubernetes_objects(job)) {
    if (object.at("kind").as_string() == kind) return object;
  }
  return {};
}

Json container(const KubernetesJob& job, const std::string& kind) {
  return of_kind(job, kind).at("spec").at("template").at("spec").at("containers").as_array().at(0);
}

TEST(KubernetesObjects, MakeAClaimUnlessThereIsOne) {
  KubernetesJob job = small_job();
  EXPECT_EQ(kinds(job), (std::vector<std::string>{"PersistentVolumeClaim", "Service", "PodDisruptionBudget",
                                                  "StatefulSet", "Job"}));
  job.claim = "data";
  EXPECT_EQ(kinds(job), (std::vector<std::string>{"Service", "PodDisruptionBudget", "StatefulSet", "Job"}));
  EXPECT_NE(of_kind(job, "Job").dump().find(R"("claimName":"data")"), std::string::npos);
}

TEST(KubernetesObjects, GiveWorkersWhatTheyAskFor) {
  KubernetesJob job = small_job();
  EXPECT_EQ(container(job, "StatefulSet").at("resources").dump(),
            R"({"requests":{"cpu":"1500m","memory":"4Gi"},"limits":{"cpu":"1500m","memory":"4Gi"}})");
  job.gpus = 2;
  job.cpus = 8;
  EXPECT_EQ(container(job, "StatefulSet").at("resources").at("limits").dump(),
            R"({"cpu":"8","memory":"4Gi","nvidia.com/gpu":"2"})");
  EXPECT_NE(of_kind(job, "StatefulSet").dump().find("/dev/shm"), std::string::npos);
  EXPECT_EQ(of_kind(job, "Job").dump().find("nvidia.com/gpu"), std::string::npos);
}

TEST(KubernetesObjects, RunTheCommandInTheCoordinatorOnly) {
  EXPECT_EQ(container(small_job(), "Job").at("command").dump(), R"(["dtrain","train","--lr","0.1"])");
  EXPECT_EQ(container(small_job(), "StatefulSet").at("command").dump(),
            R"(["dtrain","hosts","join","--job-dir","/volume/jobs/cats"])");
}

TEST(KubernetesObjects, HaveTheValuesOfVariablesInTheSecretOnly) {
  KubernetesJob job = small_job();
  job.environment = {"API_TOKEN=5ecret=", "NO=", "API_TOKEN=5ecret=x"};
  for (const Json& object : kubernetes_objects(job)) {
    if (object.at("kind").as_string() != "Secret") {
      EXPECT_EQ(object.dump().find("5ecret"), std::string::npos);
    }
    EXPECT_EQ(object.at("metadata").at("labels").find_text("app.kubernetes.io/instance"), "cats");
  }
  EXPECT_EQ(of_kind(job, "Secret").at("metadata").find_text("name"), "cats-env");
  EXPECT_EQ(of_kind(job, "Secret").at("stringData").dump(), R"({"API_TOKEN":"5ecret=x","NO":""})");
  EXPECT_EQ(container(job, "Job").at("env").dump(),
            R"([{"name":"HOME","value":"/tmp"},{"name":"DTRAIN_POD","value":"1"},)"
            R"({"name":"API_TOKEN","valueFrom":{"secretKeyRef":{"name":"cats-env","key":"API_TOKEN"}}},)"
            R"({"name":"NO","valueFrom":{"secretKeyRef":{"name":"cats-env","key":"NO"}}}])");
  EXPECT_EQ(container(job, "StatefulSet").at("env").dump(), R"([{"name":"HOME","value":"/tmp"}])");
}

Json grace(const KubernetesJob& job, const std::string& kind) {
  return of_kind(job, kind).at("spec").at("template").at("spec").at("terminationGracePeriodSeconds");
}

std::string leave_command(const KubernetesJob& job) {
  return container(job, "StatefulSet").at("lifecycle").at("preStop").at("exec").at("command").dump();
}

TEST(KubernetesObjects, GiveProgramsTheTimeToEnd) {
  KubernetesJob job = small_job();
  job.time_to_end = std::chrono::seconds(70);
  EXPECT_EQ(grace(job, "StatefulSet").as_integer(), 120);
  EXPECT_EQ(grace(job, "Job").as_integer(), 300);
  EXPECT_NE(leave_command(job).find(R"("--limit","100")"), std::string::npos);
  job.time_to_end = std::chrono::seconds(4200);
  EXPECT_EQ(grace(job, "StatefulSet").as_integer(), 4250);
  EXPECT_EQ(grace(job, "Job").as_integer(), 4250);
  EXPECT_NE(leave_command(job).find(R"("--limit","4230")"), std::string::npos);
}

TEST(KubernetesObjects, BeginProbesOutsideOfTheVolume) {
  EXPECT_EQ(container(small_job(), "StatefulSet").at("workingDir").as_string(), "/tmp");
  EXPECT_EQ(container(small_job(), "Job").at("workingDir").as_string(), "/volume");
}

TEST(KubernetesObjects, KeepTheCommandFromBeingExpanded) {
  KubernetesJob job = small_job();
  job.command = {"launch", "--", "echo", "$(HOME) $$ $"};
  EXPECT_EQ(container(job, "Job").at("command").as_array().back().as_string(), "$$(HOME) $$$$ $$");
}

TEST(KubernetesObjects, LieInTheChosenNamespace) {
  KubernetesJob job = small_job();
  for (const Json& object : kubernetes_objects(job)) EXPECT_EQ(object.at("metadata").find("namespace"), nullptr);
  job.space = "vision";
  for (const Json& object : kubernetes_objects(job))
    EXPECT_EQ(object.at("metadata").at("namespace").as_string(), "vision");
}

TEST(KubernetesObjects, AreFoundByTheirLabels) {
  EXPECT_EQ(kubernetes_selector("cats"), "app.kubernetes.io/name=dtrain,app.kubernetes.io/instance=cats");
  EXPECT_EQ(kubernetes_selector("cats", "worker"),
            "app.kubernetes.io/name=dtrain,app.kubernetes.io/instance=cats,app.kubernetes.io/component=worker");
}

TEST(Yaml, KeepsEveryValue) {
  const Json document = Json::parse(
      R"({"a":{"b":[1,"x: y\n",{"c":true,"d":[]},[2,[3]]]},"e":{},"f":null,"g":[{"h":{"i":"j"},"k":1}]})", "test");
  EXPECT_EQ(to_yaml({document, Json::object({{"z", 1}})}), R"(---
a:
  b:
    - 1
    - "x: y\n"
    - c: true
      d: []
    - - 2
      - - 3
e: {}
f: null
g:
  - h:
      i: "j"
    k: 1
---
z: 1
)");
}

TEST(Yaml, QuotesNamesThatAreWordsOfYaml) {
  EXPECT_EQ(to_yaml({Json::object({{"NO", "1"}, {"on", "2"}, {"NONE", "3"}})}),
            "---\n\"NO\": \"1\"\n\"on\": \"2\"\nNONE: \"3\"\n");
}

TEST(Yaml, EscapesWhatYamlTakesForDamage) {
  EXPECT_EQ(to_yaml({Json::object({{"a", "x\x7f\u0085\u009f\u00a0y"}})}),
            "---\na: \"x\\u007f\\u0085\\u009f\u00a0y\"\n");
  const Json list = Json::parse(R"(["\u2028\u2029\ufeff"])", "test");
  EXPECT_EQ(to_yaml({Json::object({{"b", list}})}), "---\nb:\n  - \"\\u2028\\u2029\\ufeff\"\n");
  EXPECT_EQ(to_yaml({Json::object({{"c", "\u6f22\U0001f600\n"}})}), "---\nc: \"\u6f22\U0001f600\\n\"\n");
}

TEST(Kubectl, IsShownAsAShellTakesIt) {
  EXPECT_EQ(shown_command({"/opt/bin/kubectl", "--context=arn:aws:eks:a:1:cluster/x", "--namespace=n", "delete",
                           "job,service", "-l", "a/b=dtrain,c=cats"}),
            "kubectl --context=arn:aws:eks:a:1:cluster/x --namespace=n delete job,service -l a/b=dtrain,c=cats");
  EXPECT_EQ(shown_command({"kubectl", "--context=my cluster", "get"}), "kubectl '--context=my cluster' get");
}

TEST(Kubectl, SaysItsErrorOnOneLine) {
  EXPECT_EQ(kubectl_error("error: no context exists with the name: \"x\"\n"), "no context exists with the name: \"x\"");
  EXPECT_EQ(kubectl_error("W1 warning\nError from server (Forbidden): jobs is forbidden\n"),
            "W1 warning; Error from server (Forbidden): jobs is forbidden");
  EXPECT_EQ(kubectl_error(""), "it failed without a word");
}

}  // namespace
}  // namespace dtrain::launcher
