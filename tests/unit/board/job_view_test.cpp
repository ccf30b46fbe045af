#include "job_view.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dtrain::board {
namespace {

Json job_event(int second, const std::string& rest) {
  return Json::parse("{\"time\":\"1970-01-01T00:00:" + std::to_string(second) + ".000000Z\"," + rest + "}", "test");
}
Json committed(int generation, const std::string& members) {
  return Json::parse("{\"term\":1,\"generation\":" + std::to_string(generation) +
                         ",\"state\":\"committed\",\"members\":[" + members + "]}",
                     "test");
}

const std::vector<Json> kEvents = {
    job_event(10, R"("event":"host_starting","host":"w1")"),
    job_event(11, R"("event":"worker_starting","worker":1,"host":"w1")"),
    job_event(12, R"("event":"worker_ready","worker":1,"host":"w1")"),
    job_event(12, R"("event":"worker_starting","worker":2,"host":"w1","slot":1)"),
    job_event(13, R"("event":"worker_ready","worker":2,"host":"w1","slot":1)"),
    job_event(14, R"("event":"commit","generation":1,"members":["w1","w1"])"),
    job_event(
        15,
        R"("event":"generation","generation":1,"workers":2,"reason":"begin","pause_seconds":1,"seconds":{"sync":1})"),
    job_event(20, R"("event":"failed","worker":2,"host":"w1","slot":1,"reason":"signal 9")"),
    job_event(21, R"("event":"commit","generation":2,"members":["w1"])"),
    job_event(22,
              R"("event":"generation","generation":2,"workers":1,"reason":"worker 2","pause_seconds":2,"seconds":{})"),
};
const std::vector<Json> kJournal = {
    committed(1, R"({"worker":1,"host":"w1","slot":0},{"worker":2,"host":"w1","slot":1})"),
    committed(2, R"({"worker":1,"host":"w1","slot":0})")};

TEST(JobView, EachPlaceHasALaneWithItsStates) {
  const Json view = job_view(kEvents, kJournal, 30);
  const auto& lanes = view.at("lanes").as_array();
  ASSERT_EQ(lanes.size(), 2u);
  const auto& first = lanes[0].at("spans").as_array();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first[2].at("state").as_string(), "joined");
  EXPECT_EQ(first[3].at("state").as_string(), "training");
  EXPECT_EQ(first[3].at("rank").as_integer(), 0);
  EXPECT_EQ(first[3].at("to").as_number(), 30) << "it goes on";
  EXPECT_EQ(lanes[1].at("spans").as_array().back().at("to").as_number(), 20);
  EXPECT_EQ(lanes[1].at("marks").as_array().at(0).at("kind").as_string(), "lost");
}

TEST(JobView, AHostThatIsNotAdmittedWasNotLost) {
  const std::vector<Json> events = {
      job_event(10, R"("event":"preparing","host":"w2")"),
      job_event(12, R"("event":"failed","host":"w2","stage":"health","reason":"4 GiB of memory are free")")};
  const Json lane = job_view(events, {}, 20).at("lanes").as_array().at(0);
  EXPECT_EQ(lane.at("marks").as_array().at(0).at("kind").as_string(), "refused");
  EXPECT_EQ(lane.at("marks").as_array().at(0).at("note").as_string(), "4 GiB of memory are free");
  EXPECT_EQ(lane.at("spans").as_array().at(0).at("to").as_number(), 12);
}

TEST(JobView, PausesHaveTheirCauseAndLowerTheGoodput) {
  const Json view = job_view(kEvents, kJournal, 35);
  const Json& pause = view.at("pauses").as_array().at(1);
  EXPECT_EQ(pause.at("from").as_number(), 20);
  EXPECT_EQ(pause.at("to").as_number(), 22);
  EXPECT_EQ(pause.at("reason").as_string(), "worker 2");
  EXPECT_DOUBLE_EQ(view.at("goodput_percent").as_number(), 90);
  EXPECT_EQ(view.at("worker_seconds").as_number(), 35 - 14 + 20 - 14);
}

TEST(JobView, AClockThatIsSetBackTurnsNoSpanAround) {
  std::vector<Json> events = kEvents;
  events.push_back(job_event(10, R"("event":"failed","worker":1,"host":"w1","reason":"signal 9")"));  // was 22
  events.push_back(job_event(13, R"("event":"finish","exit_code":1)"));
  const Json view = job_view(events, kJournal, 14);
  for (const Json& lane : view.at("lanes").as_array()) {
    for (const Json& span : lane.at("spans").as_array())
      EXPECT_LE(span.at("from").as_number(), span.at("to").as_number());
  }
  EXPECT_EQ(view.at("end").as_number(), 25);
}

TEST(JobView, WorkersOfAKilledJobEndWithItsLastEvent) {
  std::vector<Json> events = kEvents;  // the last one at 22
  events.push_back(job_event(50, R"("event":"hosts","list":1,"added":["w1"],"removed":[])"));
  events.push_back(job_event(52, R"("event":"commit","generation":2,"members":["w1"])"));
  const Json view = job_view(events, kJournal, 55);
  const auto& spans = view.at("lanes").as_array()[0].at("spans").as_array();
  EXPECT_EQ(spans.at(spans.size() - 2).at("to").as_number(), 22);
  EXPECT_EQ(spans.back().at("from").as_number(), 52);
  EXPECT_EQ(view.at("worker_seconds").as_number(), 22 - 14 + 20 - 14 + 55 - 52);
  EXPECT_DOUBLE_EQ(view.at("goodput_percent").as_number(), 100 * (1 - 2.0 / (22 - 15)))
      << "the second start has no step";
}

TEST(JobView, TheEndClosesEveryLane) {
  std::vector<Json> events = kEvents;
  events.push_back(job_event(25, R"("event":"finish","exit_code":0)"));
  events.push_back(job_event(25, R"("event":"goodput","percent":81.5)"));
  const Json view = job_view(events, kJournal, 99);
  EXPECT_EQ(view.at("end").as_number(), 25);
  EXPECT_TRUE(view.at("over").as_bool());
  EXPECT_EQ(view.at("goodput_percent").as_number(), 81.5);
  EXPECT_EQ(view.at("lanes").as_array()[0].at("spans").as_array().back().at("to").as_number(), 25);
}

TEST(JobView, ATrainingThatWasTooShortToMeasureHasNoGoodput) {
  const auto goodput_of = [](int end, const std::string& percent) {
    std::vector<Json> events(kEvents.begin(), kEvents.begin() + 7);  // its first step was made at 15
    events.push_back(job_event(end, R"("event":"finish","exit_code":0)"));
    if (!percent.empty()) events.push_back(job_event(end, R"("event":"goodput","percent":)" + percent));
    return job_view(events, kJournal, 99).at("goodput_percent");
  };
  EXPECT_TRUE(goodput_of(15, "71.5").is_null());
  EXPECT_TRUE(goodput_of(15, "").is_null());
  for (const char* once : {"null", "0.0"}) EXPECT_TRUE(goodput_of(18, once).is_null()) << "steps were heard of once";
  EXPECT_EQ(goodput_of(18, "71.5").as_number(), 71.5);
  EXPECT_EQ(goodput_of(18, "").as_number(), 100);
}

TEST(JobView, WithoutAJournalTheHostsSayWhoTrains) {
  const Json view = job_view(kEvents, {}, 30);
  EXPECT_EQ(view.at("lanes").as_array().at(1).at("spans").as_array().back().at("state").as_string(), "training");
}

TEST(JobView, WhoIsInNoCommitTrainsNoMore) {
  const std::vector<Json> events = {job_event(10, R"("event":"commit","generation":1,"members":["w1","w2","w3"])"),
                                    job_event(12, R"("event":"host_down","host":"w2")"),
                                    job_event(14, R"("event":"commit","generation":2,"members":["w1"])"),
                                    job_event(16, R"("event":"commit","generation":3,"members":["w3","w2"])")};
  const Json view = job_view(events, {}, 20);
  const auto ends = [&](std::size_t lane) {
    std::string text;
    for (const Json& span : view.at("lanes").as_array().at(lane).at("spans").as_array())
      text += span.at("from").dump() + "-" + span.at("to").dump() + " ";
    return text;
  };
  EXPECT_EQ(ends(0), "10.0-16.0 ");
  EXPECT_EQ(ends(1), "10.0-12.0 16.0-20.0 ");
  EXPECT_EQ(ends(2), "10.0-14.0 16.0-20.0 ");
}

TEST(JobView, DamagedEventsArePassedOver) {
  std::vector<Json> events = {Json(),
                              Json(3),
                              Json::object({{"event", "commit"}}),
                              job_event(10, R"("event":"commit")"),
                              job_event(11, R"("event":"generation","seconds":5)"),
                              job_event(12, R"("event":5)"),
                              job_event(13, R"("event":"commit","members":[1,{},null])")};
  EXPECT_NO_THROW(job_view(events, events, 20));
  EXPECT_NO_THROW(job_view({}, {}, 20));
}

TEST(JobView, BytesOfAllLivesOfTheJobAreAddedUp) {
  std::vector<Json> events = kEvents;
  events.push_back(job_event(30, R"("event":"finish","exit_code":75)"));
  events.push_back(job_event(30, R"("event":"goodput","percent":90,"sent_bytes":1000)"));
  events.push_back(job_event(50, R"("event":"goodput","percent":80,"sent_bytes":500)"));
  events.push_back(job_event(55, R"("event":"goodput","percent":80)"));
  const Json view = job_view(events, kJournal, 60);
  EXPECT_EQ(view.at("sent_bytes").as_number(), 1500);
  EXPECT_FALSE(view.at("sent_at_least").as_bool());
}

TEST(JobView, AHoldIsAPauseUntilTheNextGenerationAndCountsOnce) {
  std::vector<Json> events = kEvents;
  events.push_back(job_event(30, R"("event":"freeze","generation":2,"reason":"w1 left")"));
  events.push_back(job_event(31, R"("event":"hold","generation":2,"reason":"0 workers of at least 1")"));
  const Json held = job_view(events, kJournal, 45);
  ASSERT_EQ(held.at("pauses").as_array().size(), 3u);
  const Json& pause = held.at("pauses").as_array().back();
  EXPECT_EQ(pause.at("from").as_number(), 30);
  EXPECT_EQ(pause.at("to").as_number(), 45);
  EXPECT_EQ(pause.at("reason").as_string(), "0 workers of at least 1");
  EXPECT_EQ(held.at("pause_seconds").as_number(), 1 + 2 + 15);
  EXPECT_DOUBLE_EQ(held.at("goodput_percent").as_number(), 100 * (1 - 17.0 / 30));
  events.push_back(
      job_event(50, R"("event":"generation","generation":3,"workers":1,"reason":"w2 joined","pause_seconds":20)"));
  const Json view = job_view(events, kJournal, 55);
  EXPECT_EQ(view.at("pauses").as_array().size(), 3u);
  EXPECT_EQ(view.at("pause_seconds").as_number(), 1 + 2 + 20);
}

TEST(JobView, TheGoodputOfAResumedJobIsThatOfAllItsStarts) {
  std::vector<Json> events = {job_event(10, R"("event":"hosts","list":1,"added":["w1"],"removed":[])")};
  events.insert(events.end(), kEvents.begin(), kEvents.end());  // trains from 15 to 22, of which 2 s are a pause
  events.push_back(job_event(40, R"("event":"hosts","list":1,"added":["w1"],"removed":[])"));
  events.push_back(job_event(42, R"("event":"generation","generation":3,"workers":1,"pause_seconds":1)"));
  events.push_back(job_event(55, R"("event":"finish","exit_code":0)"));
  events.push_back(job_event(55, R"("event":"goodput","percent":100,"sent_bytes":500)"));
  const Json view = job_view(events, kJournal, 55);
  EXPECT_EQ(view.at("starts").as_integer(), 2);
  EXPECT_TRUE(view.at("estimated").as_bool());
  EXPECT_DOUBLE_EQ(view.at("goodput_percent").as_number(), 100 * (1 - 2.0 / (7 + 13)));
  EXPECT_EQ(view.at("sent_bytes").as_number(), 500);
  EXPECT_TRUE(view.at("sent_at_least").as_bool()) << "the first start was killed";
}

}  // namespace
}  // namespace dtrain::board
