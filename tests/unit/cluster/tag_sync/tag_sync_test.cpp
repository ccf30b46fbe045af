#include <gtest/gtest.h>

#include <dtrain/cluster/tag_sync.hpp>

namespace dtrain::cluster {
namespace {

using Kind = TagSyncStep::Kind;

Node worker(const std::string& status, bool tagged = true) {
  Node node;
  node.name = "w0003";
  node.instance_id = "i-3";
  node.state = "running";
  node.private_ip = "10.0.0.3";
  node.elastic = tagged;
  node.elastic_status = status;
  return node;
}

// "set_status ADDED, end_instance": what is decided about one worker.
std::string decided(const Node& node, const TagSyncView& view) {
  constexpr const char* kNames[] = {"add_host", "remove_host", "set_status", "end_instance"};
  Fleet fleet;
  (node.alive() ? fleet.nodes : fleet.ending).push_back(node);
  std::string text;
  for (const TagSyncStep& step : decide_tag_sync(fleet, view)) {
    text += (text.empty() ? "" : ", ") + std::string(kNames[static_cast<int>(step.kind)]);
    if (!step.status.empty()) text += " " + step.status;
  }
  return text;
}

TagSyncView job(bool listed, const std::string& word = "") {
  TagSyncView view{.job_runs = true, .ready = {"10.0.0.3"}};
  if (listed) view.listed = {"10.0.0.3"};
  if (!word.empty()) view.log["10.0.0.3"] = word;
  return view;
}

TEST(TagSync, WalksANewWorkerIn) {
  EXPECT_EQ(decided(worker(""), job(false)), "add_host, set_status ADD_QUEUED");
  EXPECT_EQ(decided(worker(""), job(true)), "set_status ADD_QUEUED");  // the tag was lost
  EXPECT_EQ(decided(worker("ADD_QUEUED"), job(true)), "");
  EXPECT_EQ(decided(worker("ADD_QUEUED"), job(true, "ADDED")), "set_status ADDED");
  EXPECT_EQ(decided(worker("ADDED"), job(true, "ADDED")), "");
}

TEST(TagSync, WaitsForTheNodeAndForTheJob) {
  TagSyncView view = job(false);
  view.ready.clear();
  EXPECT_EQ(decided(worker(""), view), "");
  EXPECT_EQ(decided(worker(""), {}), "");
}

TEST(TagSync, WalksAWorkerOutWhoseTagWasTakenAway) {
  EXPECT_EQ(decided(worker("ADDED", false), job(true, "ADDED")), "remove_host, set_status REMOVAL_QUEUED");
  EXPECT_EQ(decided(worker("REMOVAL_QUEUED", false), job(true, "ADDED")), "remove_host");  // that was lost
  EXPECT_EQ(decided(worker("REMOVAL_QUEUED", false), job(false, "ADDED")), "");
  EXPECT_EQ(decided(worker("REMOVAL_QUEUED", false), job(false, "REMOVED")), "set_status REMOVED");
  EXPECT_EQ(decided(worker("REMOVED", false), job(false, "REMOVED")), "end_instance");
}

TEST(TagSync, EndsWhatIsToGoAlsoWithoutAJob) {
  EXPECT_EQ(decided(worker("ADDED", false), {}), "set_status REMOVAL_QUEUED");
  EXPECT_EQ(decided(worker("REMOVAL_QUEUED", false), {}), "set_status REMOVED");
}

TEST(TagSync, FollowsAHostThatLeftTheJob) {
  EXPECT_EQ(decided(worker("ADDED"), job(false, "REMOVED")), "set_status REMOVAL_QUEUED");
}

TEST(TagSync, TakesAnInstanceOutThatIsGone) {
  Node gone = worker("ADDED");
  gone.state = "terminated";
  EXPECT_EQ(decided(gone, job(true, "ADDED")), "remove_host");
  EXPECT_EQ(decided(gone, job(false, "REMOVED")), "");
}

TEST(TagSync, LeavesTheHeadAndBaseWorkersAlone) {
  Node base = worker("", false);
  base.base = true;
  EXPECT_EQ(decided(base, job(true, "ADDED")), "");
  Node head = worker("");
  head.role = Role::head;
  EXPECT_EQ(decided(head, job(false)), "");
  EXPECT_EQ(decided(worker("", false), job(false)), "");  // a machine that nobody tagged
}

TEST(TagSync, EndsNoMachineOfAStack) {
  Node adopted = worker("REMOVAL_QUEUED", false);
  adopted.tags[tag::kAdopted] = "yes";
  EXPECT_EQ(decided(adopted, job(false, "REMOVED")), "set_status REMOVED");
  adopted.elastic_status = "REMOVED";
  EXPECT_EQ(decided(adopted, job(false, "REMOVED")), "");
}

TEST(TagSync, LooksEverMoreSeldomWhileItFails) {
  using namespace std::chrono_literals;
  EXPECT_EQ(pause_between_looks(5s, 0), 5s);
  EXPECT_EQ(pause_between_looks(5s, 1), 10s);
  EXPECT_EQ(pause_between_looks(5s, 3), 40s);
  EXPECT_EQ(pause_between_looks(5s, 1'000'000), 300s);
  EXPECT_EQ(pause_between_looks(3'600s, 7), 3'600s);
}

TEST(TagSync, ReadsTheLastWordOfTheMemberLog) {
  const auto words = last_words("0 ADDED 10.0.0.1 17\n1 ADDED 10.0.0.3 18\n2 REMOVED 10.0.0.3 19\nhalf a li");
  EXPECT_EQ(words.at("10.0.0.3"), "REMOVED");
  EXPECT_EQ(words.at("10.0.0.1"), "ADDED");
  EXPECT_EQ(words.size(), 2U);
}

}  // namespace
}  // namespace dtrain::cluster
