#include <gtest/gtest.h>

#include "job/kubernetes/cluster_view.hpp"
#include "job/kubernetes/pod_logs.hpp"

namespace dtrain::job {
namespace {

ClusterView view_of(const std::string& items) {
  return cluster_view(Json::parse(R"({"kind":"List","items":[)" + items + "]}", "test"));
}

std::string pod(const std::string& name, const std::string& component, const std::string& status,
                const std::string& time = "2026-01-01T00:00:00Z") {
  return R"({"kind":"Pod","metadata":{"ownerReferences":[{"kind":"Job","uid":"u1"}],"name":")" + name +
         R"(","creationTimestamp":")" + time + R"(","labels":{"app.kubernetes.io/component":")" + component +
         R"("}},"status":)" + status + "}";
}

TEST(ClusterView, KnowsHowAJobIs) {
  EXPECT_EQ(view_of("").job, JobPhase::missing);
  EXPECT_EQ(view_of(R"({"kind":"Job","status":{}})").job, JobPhase::active);
  EXPECT_EQ(view_of(R"({"kind":"Job","metadata":{"uid":"u1"}})").uid, "u1");
  EXPECT_EQ(view_of(R"({"kind":"Job","status":{"conditions":[{"type":"Complete","status":"True"}]}})").job,
            JobPhase::complete);
  const ClusterView failed = view_of(
      R"({"kind":"Job","status":{"conditions":[{"type":"Failed","status":"True","reason":"PodFailurePolicy",
          "message":"exit code 2"}]}})");
  EXPECT_EQ(failed.job, JobPhase::failed);
  EXPECT_EQ(failed.why, "PodFailurePolicy: exit code 2");
}

TEST(ClusterView, TakesTheNewestPodOfTheJob) {
  const ClusterView view = view_of(
      pod("x-1", "coordinator", R"({"phase":"Running","containerStatuses":[{"name":"dtrain","state":{"running":{}}}]})",
          "2026-01-01T00:00:09Z") +
      "," +
      pod("x-2", "coordinator",
          R"({"phase":"Failed","containerStatuses":[{"name":"dtrain","state":{"terminated":{"exitCode":75}}}]})") +
      "," + pod("x-0", "worker", R"({"phase":"Pending"})", "2026-01-02T00:00:00Z"));
  ASSERT_NE(view.coordinator(), nullptr);
  EXPECT_EQ(view.coordinator()->name, "x-1");
  EXPECT_EQ(view.coordinator()->owner, "u1");
  EXPECT_TRUE(view.coordinator()->runs);
  EXPECT_EQ(view.pods.at(0).exit_code, 75);
  EXPECT_TRUE(view.pods.at(0).is_over);
  EXPECT_EQ(view.pods.at(2).name, "x-0");
  EXPECT_EQ(view.find("x-2"), &view.pods.at(0));
  EXPECT_EQ(view.find("x-3"), nullptr);
}

TEST(ClusterView, LooksAtItsOwnContainerAlone) {
  const ClusterView view = view_of(pod("x-1", "coordinator",
                                       R"({"phase":"Running","containerStatuses":[
           {"name":"dtrain","state":{"terminated":{"exitCode":0}}},{"name":"proxy","state":{"running":{}}}]})"));
  EXPECT_FALSE(view.coordinator()->runs);
  EXPECT_TRUE(view.coordinator()->is_over);
  EXPECT_EQ(view.coordinator()->exit_code, 0);
}

TEST(ClusterView, SaysWhyAPodDoesNotRun) {
  const auto trouble = [](const std::string& status) { return view_of(pod("x", "worker", status)).pods.at(0).trouble; };
  EXPECT_EQ(
      trouble(
          R"({"phase":"Pending","containerStatuses":[{"name":"dtrain","state":{"waiting":{"reason":"ContainerCreating"}}}]})"),
      "");
  EXPECT_EQ(
      trouble(R"({"phase":"Pending","containerStatuses":[{"name":"dtrain","state":{"waiting":{"reason":"ErrImagePull",
                       "message":"not found"}}}]})"),
      "ErrImagePull: not found");
  EXPECT_EQ(trouble(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                       "reason":"Unschedulable","message":"0/3 nodes have a GPU"}]})"),
            "Unschedulable: 0/3 nodes have a GPU");
  EXPECT_EQ(trouble(R"({"phase":"Failed","reason":"Evicted","message":"low on memory"})"), "Evicted: low on memory");
}

TEST(PodLogs, ComparesTimesAsTexts) {
  EXPECT_EQ(timed_line("2026-01-02T03:04:05.12Z Epoch[0] x").time, "2026-01-02T03:04:05.120000000Z");
  EXPECT_EQ(timed_line("2026-01-02T03:04:05.12Z Epoch[0] x").text, "Epoch[0] x");
  EXPECT_EQ(timed_line("2026-01-02T03:04:05Z ").time, "2026-01-02T03:04:05.000000000Z");
  EXPECT_EQ(timed_line("2026-01-02T03:04:05Z").text, "");
  EXPECT_EQ(timed_line("no time here").text, "no time here");
  EXPECT_EQ(timed_line("").time, "");
}

}  // namespace
}  // namespace dtrain::job
