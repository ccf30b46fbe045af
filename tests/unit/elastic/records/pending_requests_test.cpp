#include <gtest/gtest.h>

#include <dtrain/base/event_kind.hpp>

#include "records/pending_requests.hpp"

namespace dtrain::elastic {
namespace {

Json drain(const char* host) { return Json::object({{"event", "drain"}, {"host", host}, {"reason", "asked for"}}); }
Json stop() { return Json::object({{"event", "stop"}, {"reason", "enough"}}); }
Json hosts(Json added, Json removed) {
  return Json::object({{"event", "hosts"}, {"added", std::move(added)}, {"removed", std::move(removed)}});
}

TEST(PendingRequests, AreWhatWasAskedFor) {
  const PendingRequests pending_requests =
      pending_requests_in({hosts(Json::array({"a", "b"}), Json::array()), drain("a"), stop()});
  EXPECT_EQ(pending_requests.drained, (std::map<std::string, std::string>{{"a", "asked for"}}));
  EXPECT_EQ(pending_requests.stop, PendingStop{.reason = "enough"}) << "as older versions wrote it";
}

TEST(PendingRequests, OfAHostEndWithItsLine) {
  EXPECT_TRUE(pending_requests_in({drain("a"), hosts(Json::array(), Json::array({"a"}))}).drained.empty());
  EXPECT_EQ(pending_requests_in({drain("a"), hosts(Json::array({"b"}), Json::array())}).drained.size(), 1u);
}

Json notice(const char* host, bool leave) {
  return Json::object({{"event", "notice"}, {"host", host}, {"leave", leave}, {"reason", "spot notice"}});
}

TEST(PendingRequests, HostsThatEndSoonAreKnown) {
  const std::vector<Json> events = {notice("a", true), drain("a"), notice("b", false), drain("c")};
  EXPECT_EQ(pending_requests_in(events).noticed, std::set<std::string>{"a"});
  std::vector<Json> later = events;
  later.push_back(hosts(Json::array(), Json::array({"a"})));
  EXPECT_TRUE(pending_requests_in(later).noticed.empty());
}

TEST(PendingRequests, AStopKeepsItsExitCodeAndWhetherItSaves) {
  const Json given_up =
      Json::object({{"event", "stop"}, {"exit_code", 93}, {"reason", "no progress"}, {"save", false}});
  EXPECT_EQ(pending_requests_in({given_up}).stop,
            (PendingStop{.reason = "no progress", .exit_code = ExitCode::no_progress, .save = false}));
}

TEST(PendingRequests, AStopWithoutACheckpointIsOne) {
  const Json at_once = Json::object({{"event", "end_at_once"}, {"exit_code", 75}, {"reason", "now"}});
  EXPECT_EQ(pending_requests_in({stop(), at_once}).stop, (PendingStop{.reason = "now", .at_once = true}));
  EXPECT_FALSE(pending_requests_in({at_once, Json::object({{"event", "finish"}})}).stop);
}

TEST(PendingRequests, OfAnEarlierRunOfTheJobAreForgotten) {
  const Json again = hosts(Json::array({"a"}), Json::array());
  EXPECT_FALSE(pending_requests_in({stop(), Json::object({{"event", "finish"}})}).stop);
  EXPECT_FALSE(pending_requests_in({drain("a"), stop(), again}).stop)
      << "the coordinator was killed before it could finish";
  EXPECT_TRUE(pending_requests_in({drain("a"), stop(), again}).drained.empty());
}

Json first_list(Json added) {
  Json event = hosts(std::move(added), Json::array());
  event["list"] = 1;
  return event;
}

TEST(PendingRequests, TheHostsAreThoseOfTheAcceptedLists) {
  const PendingRequests now =
      pending_requests_in({first_list(Json::array({"a", "b", "c"})), hosts(Json::array({"d"}), Json::array({"a", "b"})),
                           hosts(Json::array({"a"}), Json::array())});
  EXPECT_EQ(now.listed, (std::vector<std::string>{"c", "d", "a"}));
  EXPECT_EQ(now.unlisted, std::set<std::string>{"b"});
}

TEST(PendingRequests, AJobThatIsBegunAgainHasTheHostsOfItsOwnFirstList) {
  const PendingRequests now = pending_requests_in(
      {first_list(Json::array({"a", "b"})), hosts(Json::array(), Json::array({"a"})), first_list(Json::array({"c"}))});
  EXPECT_EQ(now.listed, std::vector<std::string>{"c"});
  EXPECT_TRUE(now.unlisted.empty());
}

TEST(PendingRequests, TrainingThatIsCompleteEndsTheJob) {
  const Json done = Json::object({{"event", "done"}, {"worker", 1}, {"host", "w1"}});
  const PendingStop complete{.reason = kTrainingIsComplete, .exit_code = ExitCode::ok};
  EXPECT_EQ(pending_requests_in({done}).stop, complete);
  EXPECT_EQ(pending_requests_in({stop(), done, done}).stop, complete);
  EXPECT_FALSE(pending_requests_in({done, Json::object({{"event", "finish"}})}).stop);
  EXPECT_FALSE(pending_requests_in({done, first_list(Json::array({"a"}))}).stop) << "the job was begun again";
}

TEST(PendingRequests, NameTheWorkersThatAreDone) {
  const auto done = [](int worker) { return make_event(EventKind::done, {{"worker", worker}, {"host", "w1"}}); };
  EXPECT_EQ(pending_requests_in({done(1), done(3)}).done, (std::set<WorkerId>{1, 3}));
  EXPECT_TRUE(pending_requests_in({done(1), make_event(EventKind::finish)}).done.empty());
  EXPECT_TRUE(pending_requests_in({done(1), first_list(Json::array({"a"}))}).done.empty());
}

TEST(PendingRequests, KnowWhetherTheJobHasTrainedSinceItBegan) {
  const Json began = first_list(Json::array({"a"})), edited = hosts(Json::array({"b"}), Json::array());
  EXPECT_FALSE(pending_requests_in({began}).trained);
  for (const Json& step : {make_event(EventKind::added, {{"host", "a"}}), make_event(EventKind::generation)}) {
    EXPECT_TRUE(pending_requests_in({began, step, edited}).trained);
    EXPECT_FALSE(pending_requests_in({began, step, began}).trained) << "the job was begun again";
  }
}

TEST(PendingRequests, AreOnDiskBeforeTheyAreAnswered) {
  for (const EventKind kind : {EventKind::hosts, EventKind::drain, EventKind::notice, EventKind::stop,
                               EventKind::end_at_once, EventKind::finish}) {
    EXPECT_TRUE(must_be_on_disk(make_event(kind))) << enum_name(kEventKindNames, kind);
  }
  for (const EventKind kind : {EventKind::done, EventKind::added, EventKind::generation, EventKind::epoch,
                               EventKind::commit, EventKind::worker_up}) {
    EXPECT_FALSE(must_be_on_disk(make_event(kind))) << enum_name(kEventKindNames, kind);
  }
  EXPECT_FALSE(must_be_on_disk(Json(3)));
}

TEST(PendingRequests, EventsOfANewerVersionArePassedOver) {
  const Json unknown = Json::object({{"event", "drain_all"}, {"host", "w2"}, {"reason", "new"}});
  const PendingRequests now = pending_requests_in({drain("w1"), stop(), unknown});
  EXPECT_EQ(now.drained.size(), 1u);
  EXPECT_TRUE(now.stop);
}

TEST(PendingRequests, DamagedEventsAreNone) {
  EXPECT_TRUE(pending_requests_in({Json::object({{"event", "drain"}}), Json(3), Json::object({})}).drained.empty());
}

}  // namespace
}  // namespace dtrain::elastic
